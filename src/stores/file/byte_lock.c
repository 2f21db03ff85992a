/* byte_lock.c - the byte locks.
 *
 * A lock of one byte by the open file description (F_OFD_SETLK) keeps processes apart and is freed
 * by the kernel when its holder dies; a mutex keeps the threads of one process apart, which share
 * the description. Both are only ever tried: a process that was stopped while it held a page must
 * not stop everybody else for longer than they are willing to wait. */
#include "stores/file/byte_lock.h"
#include "base/base.h"
#include "stores/file/blocker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

/* The bytes that are locked lie far behind any page. */
#define BYTES_BASE ((off_t)1 << 50)

#define SPINS        3        /* tries before the first sleep */
#define PAUSE_MIN_NS 20000    /* 20 us */
#define PAUSE_MAX_NS 50000000 /* 50 ms: a thousand contenders then try 20,000 times a second */

/* What is locked while another lock is held has mutexes of its own. */
static pthread_mutex_t *stripe_of(struct file_store *store, uint64_t byte)
{
    if (byte >= LOCK_WORDS)
        return &store->stripes[STRIPES + byte % STRIPES];
    if (byte >= LOCK_GROWING)
        return &store->stripes[2 * STRIPES + (byte == LOCK_CLIENTS)];
    return &store->stripes[byte % STRIPES];
}

static int set_lock(const struct file_store *store, uint64_t byte, short type)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = BYTES_BASE + (off_t)byte, .l_len = 1};

    return fcntl(store->slots_fd, F_OFD_SETLK, &lock);
}

enum hf_status hf__byte_lock_explain(struct file_store *store, uint64_t byte, struct hf_error *err)
{
    char who[96];

    if (err != NULL && hf__blocker_name(store->slots_fd, BYTES_BASE + (off_t)byte, who, sizeof who))
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": %s is stuck in the middle of a change: resume or end it", who);
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                         ": too busy: a page could not be locked in time");
}

/* 0: locked; 1: somebody has it; -1: errno. */
static int try_lock(struct file_store *store, uint64_t byte)
{
    if (pthread_mutex_trylock(stripe_of(store, byte)) != 0)
        return 1;
    /* A client that only reads has the file open for reading. */
    if (set_lock(store, byte, store->readonly ? F_RDLCK : F_WRLCK) == 0)
        return 0;
    pthread_mutex_unlock(stripe_of(store, byte));
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? 1 : -1;
}

enum hf_status hf__byte_lock(struct file_store *store, uint64_t byte, int64_t deadline_ns,
                             struct hf_error *err)
{
    /* A spin, from microseconds on, and so without the system calls of base/backoff.h: a hash for
     * dice, so that contenders do not come back in step. */
    uint64_t seed = store->client;
    int64_t pause_ns = PAUSE_MIN_NS;
    int64_t sleep_ns;
    int64_t left_ns;
    int result;

    for (int tries = 0; (result = try_lock(store, byte)) > 0; tries++) {
        if (tries < SPINS) {
            (void)sched_yield();
            continue;
        }
        left_ns = deadline_ns - store->base.host->now_ns();
        if (left_ns <= 0)
            return HF_BUSY;
        sleep_ns = pause_ns / 2 +
                   (int64_t)(hf__hash64(&pause_ns, sizeof pause_ns, seed++) % (uint64_t)pause_ns);
        hf__sleep_ns(sleep_ns < left_ns ? sleep_ns : left_ns); /* a renewal may have little time */
        if (pause_ns < PAUSE_MAX_NS)
            pause_ns *= 2;
    }
    if (result < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": cannot lock the slot file: %s", strerror(errno));
    return HF_OK;
}

void hf__byte_unlock(struct file_store *store, uint64_t byte)
{
    (void)set_lock(store, byte, F_UNLCK);
    pthread_mutex_unlock(stripe_of(store, byte));
}
