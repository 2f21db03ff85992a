/* file.h - the embedded store, as its parts know it. Each part has a header of its own, and
 * includes those below it only (tests/tidy.sh knows the order):
 *
 *   step layout word view the bytes of the slot file; a word; a lock as it was seen
 *   sys file errors       the system; this struct; what is said when something went wrong
 *   url dir blocker       the directory; who sits on a byte lock
 *   floor location fifo   the promise about tokens; is the store still there; FIFOs
 *   byte_lock             the lock of a page
 *   map                   the bytes of the file, read and written; words, compared and swapped
 *   details               who holds a lock, since when
 *   page life             pages, found and split; FIFOs as signs of life
 *   ticket                a waiter's number, and whether its waiter lives
 *   slot                  a lock in its page: found, made, granted
 *   quick                 what needs no lock of a page
 *   queue                 those who wait for one lock, in order
 *   client                a client's page of details; those of the dead
 *   record_file record_sweep     records as files, and their end
 *   revocation            who broke a hold
 *   hold                  renewed, released
 *   acquire begun break list record identity forget   what the table of operations does
 *   convert               a slot file of format 1
 *   open repair           the slot file of this boot; a way out for a damaged store
 *   audit                 what can be learned about it without a change
 *   store                 the table of operations (operations.h)
 */
#ifndef HF_STORES_FILE_FILE_H
#define HF_STORES_FILE_FILE_H

#include "stores/file/layout.h"
#include "stores/file/sys.h"
#include <holdfast/store.h>
#include <pthread.h>
#include <stdatomic.h>

#define STRIPES        64 /* in-process mutexes over the pages, and over guarded words */
#define SLOTS_MET      64 /* places of slots that are remembered */
#define PATH_SHOWN_MAX 80 /* bytes of a path in an error's text */

struct fifo;

/* What tells one file from another, how many names it has, and how long it is. */
struct file_id {
    uint64_t inode;
    uint32_t major;
    uint32_t minor;
    uint32_t links;
    uint64_t pages; /* its size */
};

/* What we know of a hold that our details are about. It may be old: then a swap fails. */
struct own_hold {
    atomic_uint_fast64_t at; /* its slot in the file */
    atomic_uint_fast64_t token;
    atomic_uint_fast64_t state; /* the high half of its word */
    atomic_uint_fast64_t ttl_ms;
    atomic_uint_fast64_t owner[2];
};

struct file_store {
    struct hf_store_base base;
    const struct hf__file_sys *sys;
    char *path;                         /* the directory, absolute once it is open */
    char shown[5 + PATH_SHOWN_MAX + 1]; /* "file:" and the path, or the end of a long one */
    char *url;                          /* file: and the path, as another process opens it */
    int dir_fd;                         /* holds flock(LOCK_SH) */
    int slots_fd;                       /* readonly: -1 if there is no store yet */
    int root_fd;                        /* where slots_path begins */
    char *slots_path;                   /* the slot file's, from the root */
    struct file_id slots_id;            /* and what was there at the start */
    atomic_int_fast64_t check_at_ns;    /* when to see next whether it still is */
    char boot_id[37];
    bool readonly; /* makes and changes nothing */
    bool alone;    /* repair: dir_fd holds flock(LOCK_EX) instead */
    bool shared;   /* ?shared=group */
    uid_t uid;     /* the directory's owner */
    gid_t gid;     /* and group */
    uint64_t token_base;
    atomic_uint_fast64_t promise; /* tokens up to here may be given */
    /* Of pages, of guarded words, of growing, of clients. */
    pthread_mutex_t stripes[2 * STRIPES + 2];
    bool mapped;              /* how words are read and changed: see word.h */
    atomic_uint page_count;   /* pages that the file was seen to have */
    _Atomic(char *) *chunks;  /* map.c: the file in memory, as far as it was needed */
    pthread_mutex_t map_lock; /* for adding one */
    atomic_uint client_page;  /* of details; 0: we have none */
    uint32_t client_place;    /* its place in the table */
    /* For each of that page: 0, or a number of its own for each use, odd if a word may name it. */
    atomic_uint_fast64_t details_uses[DETAILS_PER_PAGE + 1];
    atomic_uint_fast64_t details_count; /* of uses so far */
    struct own_hold own_holds[DETAILS_PER_PAGE + 1];
    atomic_int_fast64_t client_at_ns; /* when to try again to get a page, or details back */
    uint64_t client;                  /* random, never 0 */
    atomic_bool swept;                /* what the dead left was looked for */
    pthread_mutex_t life_lock;        /* guards what follows */
    atomic_int life_fd;
    struct fifo *kept; /* of locks held after a wait */
    atomic_uint kept_count;
    struct fifo *spares; /* for the next wait */
    size_t spare_count;
    atomic_uint drafts; /* records written by us, to tell them apart */
    /* By the low bits of a hash: a slot where we met it; where words are guarded. 0: none yet. */
    atomic_uint_fast64_t met[SLOTS_MET];
    /* By the low bits of a hash: a page. NULL until a split page was met. */
    _Atomic(_Atomic(uint32_t) *) hints;
};

static inline struct file_store *hf__file_of(struct hf_store_base *base)
{
    return (struct file_store *)base;
}

/* The path as it is shown, without "file:". */
static inline const char *hf__shown_path(const struct file_store *store)
{
    return store->shown + 5;
}

/* file.c: a store with nothing open yet, NULL without memory; and its end. */
struct file_store *hf__file_new(const struct hf__file_sys *sys, const struct hf_host *host);
void hf__file_free(struct file_store *store);

/* store.c */

extern const struct hf_store_ops hf__file_ops;
/* hf__file_ops.open with another system underneath. sys outlives the store. */
enum hf_status hf__file_open_on(const struct hf__file_sys *sys, const struct hf_host *host,
                                const char *url, int64_t deadline_ns, struct hf_store_base **out,
                                struct hf_error *err);

#endif /* HF_STORES_FILE_FILE_H */
