/* layout.h - the slot file, byte by byte.
 *
 * Page 0 holds the file's header. Then come ROOTS buckets, and the pages of the client table. What
 * is added later is a bucket or a client page. All are of 4 KiB.
 *
 * A bucket is a head and seven slots of 512 bytes; a slot is one lock. A name's hash chooses one of
 * ROOTS buckets; a full bucket is split in two by the next bit of the hash, and its head remembers
 * where the other half went:
 *
 *     root page (bits 0..3)          next[0] -> page for names whose bit 4 is 1
 *       keeps the 0s at every bit    next[1] -> page for names whose bits 4,5 are 0,1
 *
 * so that a lookup starts at a root, or at a remembered page, and follows at most a few heads.
 * Pages are never given back; slots are reused.
 *
 * All that decides about a lock is in the first 16 bytes of its slot, its word (word.h), which is
 * only ever changed by compare-and-swap. The rest of a slot, and heads, are written by whoever has
 * the page locked. Whoever holds the lock, and since when, is in the details that the word names:
 * those in the slot itself, or one of fifteen in a client page, which only that client writes.
 *
 * All-zero heads and slots are valid and empty. Numbers are in the machine's own order: the file
 * never leaves the machine, nor outlives its boot. */
#ifndef HF_STORES_FILE_LAYOUT_H
#define HF_STORES_FILE_LAYOUT_H

#include "base/cas.h"

#include <holdfast.h>

#define PAGE_SIZE      4096
#define SLOT_SIZE      512
#define SLOTS_PER_PAGE 7
#define ROOT_BITS      4
#define ROOTS          (1u << ROOT_BITS)
#define SPLITS_MAX     48 /* bits of the hash that can part two names */
#define FORMAT_VERSION 2
#define PAGE_NONE      UINT32_MAX /* no page has this number */
#define TICKETS_MAX    (1u << 20) /* of a queue, the dead in it included */

#define DETAILS_SIZE     256
#define DETAILS_PER_PAGE 15
#define DETAILS_BITS     20 /* of a word: a client's place in the table, and which of its details */
/* The details in the slot itself, with their ttl or with the other one of the slot. */
#define DETAILS_SLOT     0u
#define DETAILS_OTHER    (1u << (DETAILS_BITS - 1))
#define TABLE_PAGES      16
#define CLIENTS_PER_PAGE (PAGE_SIZE / 4)
#define CLIENTS_MAX      (TABLE_PAGES * CLIENTS_PER_PAGE)
#define TABLE_FIRST      (1 + ROOTS)                 /* page */
#define PAGES_FIRST      (TABLE_FIRST + TABLE_PAGES) /* the first that is added */

/* How words are read and changed: see word.h. The maker of a file decides. */
enum words { WORDS_MAPPED = 1, WORDS_GUARDED = 2 };

struct file_header {
    uint64_t sum; /* of all that follows */
    char magic[8];
    uint32_t version;
    uint32_t page_size;
    char boot_id[40];
    uint64_t time_namespace;
    uint64_t base;    /* tokens of this file are at least this */
    uint64_t promise; /* copy of the durable floor: tokens up to here may be given */
    uint64_t inode;   /* the file's own: a copy has another */
    uint32_t words;   /* enum words */
    char padding[SLOT_SIZE - 100];
};

/* The block behind the header. Changed with the clients' byte lock held. */
struct client_count {
    uint32_t count; /* entries of the table in use */
    uint32_t turn;  /* where to begin to look for one that can be had again */
    char padding[SLOT_SIZE - 8];
};

struct page_head {
    uint64_t sum;
    uint64_t floor;  /* tokens in this bucket are above this: left by names that lost their slot */
    uint64_t prefix; /* the low ROOT_BITS + born bits of every hash in here */
    uint32_t born;   /* splits that led to this page */
    uint32_t depth;  /* splits that this page's names share */
    uint32_t next[SPLITS_MAX]; /* where the names with a 1 at split i went; born <= i < depth */
    char padding[SLOT_SIZE - 32 - 4 * SPLITS_MAX];
};

/* Who holds a lock. Those of another token, or another hash, say nothing about it. */
struct details {
    uint64_t token;  /* of the hold; 0 while they are written */
    uint64_t hash;   /* of the lock's name */
    uint64_t client; /* whose alive/ FIFO stands for the holder; 0: detached */
    int64_t taken_ns;
    uint64_t ttl_ms;
    unsigned char owner[HF_OWNER_LEN / 2];
    char label[HF_LABEL_MAX + 8];
};

struct slot {
    struct hf__pair word;  /* see word.h */
    uint64_t hash;         /* of the name; 0: an empty slot */
    uint64_t sum;          /* of hash and name */
    uint64_t head;         /* the ticket that is next */
    uint64_t tail;         /* the ticket that the next waiter draws */
    uint64_t broken;       /* the token of the hold that was broken last; 0: none was */
    uint64_t other_ttl_ms; /* of a hold whose details are number DETAILS_OTHER */
    struct details details;
    char name[HF_NAME_MAX + 8];
    char padding[SLOT_SIZE - 64 - (HF_OWNER_LEN / 2 + 40 + HF_LABEL_MAX + 8) - (HF_NAME_MAX + 8)];
};

struct page {
    struct page_head head;
    struct slot slots[SLOTS_PER_PAGE];
};

struct client_head {
    uint64_t sum; /* of magic and place */
    char magic[8];
    uint64_t place;  /* in the table */
    uint64_t client; /* whose it is; 0: nobody's. Written last, and first when it is given up. */
    char padding[DETAILS_SIZE - 32];
};

struct client_details {
    struct details details;
    char padding[DETAILS_SIZE - sizeof(struct details)];
};

struct client_page {
    struct client_head head;
    struct client_details details[DETAILS_PER_PAGE];
};

_Static_assert(sizeof(struct file_header) == SLOT_SIZE, "a header is one block");
_Static_assert(sizeof(struct client_count) == SLOT_SIZE, "the count is one block");
_Static_assert(sizeof(struct page_head) == SLOT_SIZE, "a head is one block");
_Static_assert(sizeof(struct slot) == SLOT_SIZE, "a slot is one block");
_Static_assert(sizeof(struct page) == PAGE_SIZE, "a page is a page");
_Static_assert(sizeof(struct client_page) == PAGE_SIZE, "a client page is a page");
_Static_assert(CLIENTS_MAX << 4 <= DETAILS_OTHER, "each has a number");

/* Fills in, and checks, the sum of a header or head of SLOT_SIZE bytes. */
void hf__sum_set(void *block);
bool hf__sum_ok(const void *block);
/* The sum over a slot's hash and name, and over a client page's head. */
uint64_t hf__slot_sum(const struct slot *slot);
uint64_t hf__client_sum(const struct client_head *head);

/* What a head whose sum fits says makes sense. */
bool hf__head_sound(const struct page_head *head, uint32_t page_no);
/* Of a slot that has a name, whatever its word says. */
bool hf__slot_sound(const struct slot *slot);
/* The child is the page that holds the names with a 1 at this split of the parent. */
bool hf__child_sound(const struct page_head *parent, uint32_t split, const struct page_head *child);

#endif /* HF_STORES_FILE_LAYOUT_H */
