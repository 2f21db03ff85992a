/* layout.h - the slot file, byte by byte.
 *
 * Page 0 holds the file's header. Every other page of 4 KiB is a bucket: a head and seven slots of
 * 512 bytes. A name's hash chooses one of ROOTS buckets; a full bucket is split in two by the next
 * bit of the hash, and its head remembers where the other half went:
 *
 *     root page (bits 0..3)          next[0] -> page for names whose bit 4 is 1
 *       keeps the 0s at every bit    next[1] -> page for names whose bits 4,5 are 0,1
 *
 * so that a lookup starts at a root, or at a remembered page, and follows at most a few heads. A
 * split writes the new page first, where nobody looks yet, and then the old head: one pwrite makes
 * it true. Pages are never given back; slots are reused.
 *
 * Every change of state is one pwrite of one slot or one head. They are of 512 bytes within one
 * page of the page cache: a killed process leaves the old or the new bytes, nothing in between.
 * All-zero heads and slots are valid and empty. Numbers are in the machine's own order: the file
 * never leaves the machine, nor outlives its boot. */
#ifndef HF_STORES_FILE_LAYOUT_H
#define HF_STORES_FILE_LAYOUT_H

#include <holdfast.h>

#define PAGE_SIZE      4096
#define SLOT_SIZE      512
#define SLOTS_PER_PAGE 7
#define ROOT_BITS      4
#define ROOTS          (1u << ROOT_BITS)
#define SPLITS_MAX     48 /* bits of the hash that can part two names */
#define FORMAT_VERSION 1
#define PAGE_NONE      UINT32_MAX /* no page has this number */
#define TICKETS_MAX    (1u << 20) /* of a queue, the dead in its midst included */

struct file_header {
    uint64_t sum; /* of all that follows */
    char magic[8];
    uint32_t version;
    uint32_t page_size;
    char boot_id[40];
    uint64_t time_namespace;
    uint64_t base;    /* tokens of this file are at least this */
    uint64_t promise; /* copy of the durable floor: tokens up to here may be given */
    char padding[SLOT_SIZE - 88];
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

struct slot {
    uint64_t sum;
    uint64_t hash;      /* of the name; with sum 0: an empty slot */
    uint64_t token;     /* the last one given for this name */
    int64_t expires_ns; /* CLOCK_BOOTTIME; 0: not held */
    int64_t taken_ns;   /* when the present holder took it */
    uint64_t client;    /* whose alive/ FIFO stands for the holder; 0: detached */
    unsigned char owner[HF_OWNER_LEN / 2];
    uint64_t head;    /* the ticket that is next */
    uint64_t tail;    /* the ticket that the next waiter draws */
    int64_t claim_ns; /* not held: reserved for the head until then */
    uint64_t broken;  /* the token of the hold that was broken last; 0: none was */
    uint32_t ttl_ms;
    char name[HF_NAME_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    char padding[SLOT_SIZE - 100 - (HF_NAME_MAX + 1) - (HF_LABEL_MAX + 1)];
};

_Static_assert(sizeof(struct file_header) == SLOT_SIZE, "a header is one slot");
_Static_assert(sizeof(struct page_head) == SLOT_SIZE, "a head is one slot");
_Static_assert(sizeof(struct slot) == SLOT_SIZE, "a slot is a slot");

struct page {
    struct page_head head;
    struct slot slots[SLOTS_PER_PAGE];
};
_Static_assert(sizeof(struct page) == PAGE_SIZE, "a page is a page");

/* Fills in, and checks, the sum of a header, head or slot of SLOT_SIZE bytes. */
void hf__sum_set(void *block);
bool hf__sum_ok(const void *block);

/* What a block whose sum fits says makes sense. */
bool hf__head_sound(const struct page_head *head, uint32_t page_no);
/* Of a slot that is not empty. */
bool hf__slot_sound(const struct slot *slot);
/* The child is the page that holds the names with a 1 at this split of the parent. */
bool hf__child_sound(const struct page_head *parent, uint32_t split, const struct page_head *child);

#endif /* HF_STORES_FILE_LAYOUT_H */
