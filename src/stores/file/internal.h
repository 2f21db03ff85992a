/* internal.h - what the files of the embedded store share. */
#ifndef HF_STORES_FILE_INTERNAL_H
#define HF_STORES_FILE_INTERNAL_H

#include "base/base.h"
#include "stores/file/file.h"
#include "stores/file/layout.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define STRIPES        64           /* in-process mutexes over the buckets              */
#define HINT_BITS      18           /* hashes whose bucket a client remembers           */
#define CLAIM_NS       HF__NS_PER_S /* how long a hand-over waits for its waiter        */
#define FIFO_NAME_SIZE 64           /* "queue/" + hash + ticket                         */
#define HOUR_US        3600000000LL
#define TICKETS_MAX    (1u << 20) /* of a waiting line, the dead in its midst included */
#define PATH_SHOWN_MAX 80         /* bytes of a path in an error's text */

/* A waiter's FIFO, kept while its owner holds the lock: the next in line watches it. */
struct turn {
    struct turn *next;
    unsigned char owner[HF_OWNER_LEN / 2];
    char name[FIFO_NAME_SIZE];
    int fd;
};

/* What tells one file from another, and how many names it has. */
struct file_id {
    uint64_t inode;
    uint32_t major;
    uint32_t minor;
    uint32_t links;
};

struct file_store {
    struct hf_store_base base;
    const struct hf__file_sys *sys;
    char *path;                     /* the directory, absolute once it is open */
    char shown[PATH_SHOWN_MAX + 1]; /* the path, or the end of a long one, for error texts */
    char *url;                      /* file: and the path, as another process may open it */
    int dir_fd;                     /* holds flock(LOCK_SH)            */
    int slots_fd;
    int root_fd;                     /* where slots_path begins        */
    char *slots_path;                /* the slot file's, from the root */
    struct file_id slots_id;         /* and what was there at the start */
    atomic_int_fast64_t check_at_ns; /* when to look next whether it still is */
    char boot_id[37];
    bool to_look; /* makes nothing: slots_fd is -1 if there is no store yet */
    bool alone;   /* repair: dir_fd holds flock(LOCK_EX) instead            */
    bool shared;  /* ?shared=group                   */
    uid_t uid;    /* the directory's owner           */
    gid_t gid;    /* and group                       */
    uint64_t token_base;
    atomic_uint_fast64_t promise;         /* tokens up to here may be given */
    pthread_mutex_t stripes[STRIPES + 1]; /* the last one is for growing */
    pthread_mutex_t life_lock;            /* guards life_fd, turns, spares */
    int life_fd;
    uint64_t client;     /* random, never 0 */
    struct turn *turns;  /* of locks held after a wait */
    struct turn *spares; /* for the next wait          */
    size_t spare_count;
    /* By the low HINT_BITS of a hash: a page. NULL until a split bucket was met. */
    _Atomic(_Atomic(uint32_t) *) hints;
};

/* A bucket that is locked and read. */
struct bucket {
    uint32_t page_no;
    bool blocked; /* or could not be locked in time */
    struct page page;
};

static inline struct file_store *hf__file_of(struct hf_store_base *base)
{
    return (struct file_store *)base;
}

/* sys.c: pwrite until all is written; false with errno. */
bool hf__write_all(const struct hf__file_sys *sys, int fd, const void *data, size_t len, off_t at);

/* url.c: from a URL to a directory; *shared_out: ?shared=group. The caller frees *path_out. */
enum hf_status hf__dir_parse(const char *url, char **path_out, bool *shared_out,
                             struct hf_error *err);

/* dir.c: the directory, and whether it can be trusted. */

/* Creates the directory if need be, refuses unsafe ones and network file systems; sets dir_fd. Only
 * to look, dir_fd stays -1 if there is none. */
enum hf_status hf__dir_open(struct file_store *store, struct hf_error *err);
/* fsync of the directories above, as far as we may read them: a directory whose own name is lost
 * with the power takes the floor with it. */
enum hf_status hf__dir_sync_parents(struct file_store *store, struct hf_error *err);
/* flock(2) on the directory, tried until deadline_ns. */
enum hf_status hf__dir_lock(struct file_store *store, int operation, int64_t deadline_ns,
                            struct hf_error *err);
/* HF_CORRUPT: what is damaged, and how to repair it. ask_above: the tokens are in doubt too. */
enum hf_status hf__dir_damaged(const struct file_store *store, const char *what, bool ask_above,
                               struct hf_error *err);
/* *out: a slot file other than `except` (NULL: any) is there. */
enum hf_status hf__dir_has_slots(const struct file_store *store, const char *except, bool *out,
                                 struct hf_error *err);
/* Removes every slot file and FIFO. Needs LOCK_EX. */
enum hf_status hf__dir_discard(struct file_store *store, struct hf_error *err);
/* The mode for files: 0600, or 0660 in a shared directory. */
mode_t hf__dir_mode(const struct file_store *store);
/* Opens a small file for reading and writing, made if need be. It appears with all its rights from
 * the start, whatever the umask. -1 with errno. */
int hf__dir_create(struct file_store *store, const char *name);
/* The same for a folder. */
void hf__dir_make_folder(struct file_store *store, const char *name);
/* What an errno means for the caller: HF_DENIED, HF_INVALID (a path that leads nowhere, however
 * long one waits) or HF_UNREACHABLE. */
enum hf_status hf__dir_status(int error);
/* Refuses files and FIFOs that others could have planted. */
bool hf__dir_trusts(const struct file_store *store, const struct stat *st);

/* open.c: opens or creates the slot file; dir_fd is open and locked. The lock may be given up
 * meanwhile, and is had again on HF_OK, unless store->alone. Only to look, slots_fd stays -1 if
 * there is none, and dir_fd need not be locked. */
enum hf_status hf__slots_open(struct file_store *store, int64_t deadline_ns, struct hf_error *err);

/* floor.c: the durable promise about tokens. */

/* Reads the floor. HF_OK with 0: there is none yet. HF_CORRUPT: refused, with the way out. */
enum hf_status hf__floor_read(struct file_store *store, uint64_t *out, struct hf_error *err);
/* Replaces it by write, fsync, rename, fsync. */
enum hf_status hf__floor_write(struct file_store *store, uint64_t promise, struct hf_error *err);
/* The lock over changes of the floor: closing *out gives it back. */
enum hf_status hf__floor_lock(struct file_store *store, int64_t deadline_ns, int *out,
                              struct hf_error *err);
/* Makes sure that `token` may be given; raises the floor first if it is above the promise. */
enum hf_status hf__floor_admit(struct file_store *store, uint64_t token, int64_t deadline_ns,
                               struct hf_error *err);
/* Raises the floor ahead of need, if `token` used up half of what was promised. */
void hf__floor_refill(struct file_store *store, uint64_t token);

/* guard.c: the byte-range locks over buckets. */

#define GUARD_GROW UINT32_MAX /* instead of a page: the end of the file */

/* Takes the lock of a page, trying until deadline_ns. HF_BUSY, without a text: somebody has it. */
enum hf_status hf__guard_lock(struct file_store *store, uint32_t page_no, int64_t deadline_ns,
                              struct hf_error *err);
/* HF_UNREACHABLE, and who sits on it. Looks at every process: not for those who only try again. */
enum hf_status hf__guard_explain(struct file_store *store, uint32_t page_no, struct hf_error *err);
void hf__guard_unlock(struct file_store *store, uint32_t page_no);

/* blocker.c: "process 12 (name, stopped)" for who holds the lock on a byte of the file; false if it
 * cannot be told. */
bool hf__blocker_name(int fd, off_t byte, char *out, size_t size);

/* bucket.c: finding, reading, writing and splitting buckets. */

uint64_t hf__name_hash(const char *name);
/* The page where to look first for a hash: the right one, or one that leads there. */
uint32_t hf__bucket_guess(struct file_store *store, uint64_t hash);
/* Locks and reads the bucket that `hash` belongs to. Pairs with hf__bucket_unlock. HF_UNREACHABLE
 * with out->blocked, and no text yet: it could not be locked in time. */
enum hf_status hf__bucket_lock(struct file_store *store, uint64_t hash, int64_t deadline_ns,
                               struct bucket *out, struct hf_error *err);
/* Passes a status of hf__bucket_lock on, with the text that a blocked bucket deserves. */
enum hf_status hf__bucket_failed(struct file_store *store, const struct bucket *bucket,
                                 enum hf_status status, struct hf_error *err);
void hf__bucket_unlock(struct file_store *store, const struct bucket *bucket);
/* The slot of a name, or NULL. */
struct slot *hf__bucket_find(struct bucket *bucket, uint64_t hash, const char *name);
/* Writes one slot of a locked bucket. */
enum hf_status hf__bucket_write(struct file_store *store, struct bucket *bucket, struct slot *slot,
                                struct hf_error *err);
/* A slot for a new name in a locked bucket: an empty one, else an idle one, whose token becomes the
 * bucket's floor first. NULL with HF_OK if all are in use. */
enum hf_status hf__bucket_vacate(struct file_store *store, struct bucket *bucket, struct slot **out,
                                 struct hf_error *err);
/* Splits a full locked bucket; it stays locked, and may now be the wrong one for a hash. */
enum hf_status hf__bucket_split(struct file_store *store, struct bucket *bucket,
                                struct hf_error *err);
/* How many whole pages the file has. */
enum hf_status hf__page_count(struct file_store *store, uint32_t *out, struct hf_error *err);
/* Reads and checks a page; without its lock, a change caught in the middle looks like damage. */
enum hf_status hf__page_read(struct file_store *store, uint32_t page_no, struct page *out,
                             struct hf_error *err);
/* HF_CORRUPT, with the way out. */
enum hf_status hf__page_damaged(const struct file_store *store, uint32_t page_no,
                                struct hf_error *err);
/* Where names with this hash live according to a page's head: the page itself or another one. */
uint32_t hf__page_route(const struct page_head *head, uint32_t page_no, uint64_t hash);

/* sound.c: what a page says makes sense. The sums are checked elsewhere. */
bool hf__head_sound(const struct page_head *head, uint32_t page_no);
/* Of a slot that is not empty. */
bool hf__slot_sound(const struct slot *slot);
/* The child is the page that holds the names with a 1 at this split of the parent. */
bool hf__child_sound(const struct page_head *parent, uint32_t split, const struct page_head *child);

/* life.c: FIFOs as signs of life. */

/* Makes a FIFO, in place of one that the dead may have left, and opens it for reading and writing.
 * -1 with errno. */
int hf__fifo_make(struct file_store *store, const char *name);

/* The client's own FIFO, made at the first call; -1 if it cannot be had. */
int hf__life_fd(struct file_store *store);
/* False only if the client is surely gone. Unlinks the FIFO of a dead client. */
bool hf__life_check(struct file_store *store, uint64_t client);
/* A descriptor that becomes readable (HUP) when the client dies; -1 if it is dead already. */
int hf__life_watch(struct file_store *store, uint64_t client);
/* Closes the own FIFO; unlinks it unless forked. */
void hf__life_close(struct file_store *store, bool forked);
/* Removes FIFOs of the dead, now and then. */
void hf__life_sweep(struct file_store *store);

/* ticket.c: tickets and their FIFOs. */

void hf__ticket_name(char *out, uint64_t hash, uint64_t ticket); /* FIFO_NAME_SIZE bytes */
/* Opens a ticket's FIFO for writing. -1: dead; -2: cannot tell. Unlinks that of a dead one if the
 * bucket is locked: otherwise it may be one that its waiter is about to open. */
int hf__ticket_open(struct file_store *store, uint64_t hash, uint64_t ticket, bool locked);
/* Takes the tickets of the dead off the end of the line. They can be drawn again: nobody stands
 * behind them, and so nobody watches them. Otherwise those who come and lose patience while one
 * holds on would leave ever more to step over. The bucket is locked. Returns true if there were
 * any. */
bool hf__ticket_trim(struct file_store *store, struct slot *slot);
/* The first ticket from slot->head on whose waiter lives, or slot->tail; removes dead FIFOs it
 * passes. The bucket is locked. *fd_out (may be NULL): the FIFO, open for writing, -1 if there is
 * none. */
uint64_t hf__ticket_first_live(struct file_store *store, const struct slot *slot, int *fd_out);
/* How many waiters live: counted to WAITERS_COUNTED, and from there every ticket is one, so that
 * many who look at a long line do not ask every one in it. The bucket need not be locked; nothing
 * is changed. */
#define WAITERS_COUNTED 64
uint64_t hf__ticket_count(struct file_store *store, const struct slot *slot);
/* Removes the FIFO queue/HASH.TICKET if its waiter is dead; leaves it if the bucket is in use. */
void hf__ticket_sweep(struct file_store *store, const char *name);
/* After a release, a leave or a lapse: reserves the lock for the next live waiter, writes the slot,
 * wakes that waiter. The slot is not held. */
enum hf_status hf__ticket_pass(struct file_store *store, struct bucket *bucket, struct slot *slot,
                               int64_t now_ns, struct hf_error *err);

/* queue.c: waits in line for claim->name until it is granted, the wait is over, or cancelled. */
enum hf_status hf__queue_wait(struct file_store *store, const struct hf_claim *claim,
                              struct hf_grant *grant, struct hf_error *err);

/* turn.c: the FIFOs of waiters. */

/* A FIFO to wait with: one used before, or one that is still to be made. NULL: out of memory. */
struct turn *hf__turn_new(struct file_store *store);
/* Puts it in place under a ticket's name. False with errno. */
bool hf__turn_place(struct file_store *store, struct turn *turn, const char *name);
/* Writes the wake byte into a waiter's FIFO. Raises no signal in the caller's program if the waiter
 * has died since its FIFO was opened. */
void hf__turn_wake(int fd);
/* Closes and frees it: those who watch it wake up. */
void hf__turn_drop(struct file_store *store, struct turn *turn);
/* Keeps it while `owner` holds the lock; released, it can be used again. */
void hf__turn_keep(struct file_store *store, struct turn *turn, const char *owner);
void hf__turn_release(struct file_store *store, const unsigned char *owner);
void hf__turn_close_all(struct file_store *store, bool forked);

/* take.c: the decision whether a lock can be taken, and taking it. */

enum look {
    LOOK_TAKEN,  /* granted: *grant is filled in                 */
    LOOK_HELD,   /* another holds it                             */
    LOOK_PASSED, /* it was free, and an older waiter has the turn */
};
/* Looks at a lock in a locked bucket and takes it if it is our turn. ticket: 0 for a newcomer.
 * slot: the lock's slot. */
enum hf_status hf__take_look(struct file_store *store, struct bucket *bucket, struct slot *slot,
                             const struct hf_claim *claim, uint64_t ticket, enum look *look_out,
                             struct hf_grant *grant, struct hf_error *err);
/* The lock's slot in its locked bucket, made if need be; splits as often as it takes. A blocked
 * bucket as of hf__bucket_lock. */
enum hf_status hf__take_slot(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct slot **out, struct hf_error *err);
/* True if the slot is held by a live, unexpired holder. */
bool hf__slot_held(struct file_store *store, const struct slot *slot, int64_t now_ns);
/* HF_BUSY with who holds it. */
enum hf_status hf__busy(struct file_store *store, const struct slot *slot, const char *name,
                        int64_t now_ns, struct hf_error *err);

/* list.c, repair.c: slots of the ops table. */
enum hf_status hf__file_list(struct hf_store_base *base, const struct hf_query *query,
                             hf_list_fn *fn, void *data, struct hf_error *err);
enum hf_status hf__file_repair(const struct hf_host *host, const char *url, uint64_t above,
                               struct hf_error *report);

/* place.c: is the store still where its URL says? */

/* Remembers where the slot file is, which is open. Once per store. */
enum hf_status hf__place_note(struct file_store *store, const char *slots_name,
                              struct hf_error *err);
/* HF_CORRUPT if the slot file or a directory above it was moved, removed or replaced: what we read
 * and write there nobody else sees. Looks at most a hundred times a second. */
enum hf_status hf__place_check(struct file_store *store, struct hf_error *err);

/* file.c */

/* A store struct with nothing open yet; and its end. */
struct file_store *hf__file_new(const struct hf__file_sys *sys, const struct hf_host *host);
void hf__file_free(struct file_store *store);

#endif /* HF_STORES_FILE_INTERNAL_H */
