/* torture.h - workers that hold locks of any store while they are killed, frozen and cut off, and a
 * referee in other memory that sees whether the promises were kept.
 *
 * Each worker takes one of TORTURE_LOCKS locks, by turns kept by the keeper and not, reads two
 * counters, dawdles, and writes them plus one: one counter behind a fence, the other without.
 * Meanwhile the driver kills workers, freezes them for longer than the ttl, and has them cut
 * their own connections. Breaches:
 *
 *   overlap   two holds of one lock were valid at the same time
 *   disorder  a valid hold had a token that was not above all earlier ones, or a token came twice
 *   lost      an update behind the fence was lost
 *
 * The counter without a fence is the control: it should lose some.
 *
 *   referee.c    the ledgers, and what is noted in them
 *   worker.c     a worker
 *   cut.c        how it is cut off
 *   driver.c     what is done to them, and the end of it */
#ifndef HF_TORTURE_TORTURE_H
#define HF_TORTURE_TORTURE_H

#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
    TORTURE_LOCKS = 3,
    TORTURE_WORKERS_MAX = 32,
    TORTURE_WORKERS_DEFAULT = 8,
    TORTURE_STATUSES = HF_NOMEM + 1,
    TORTURE_STEP_MS = 15, /* from one step of the driver to the next */
    TORTURE_PREFIX_SIZE = 64,
    TORTURE_HANDOVERS_MAX = 4096, /* that are remembered */
    TORTURE_BREACHES_MAX = 20,    /* whose texts are remembered */
    TORTURE_BREACH_SIZE = 120,
    TORTURE_MARKS_MAX = 1024, /* faults of a kind whose time is remembered */
    TORTURE_SAMPLES_MAX = 256 /* of the lost updates, over the time */
};

/* What is done to workers. */
enum torture_fault { TORTURE_KILL, TORTURE_FREEZE, TORTURE_CUT, TORTURE_FAULTS };

struct torture_plan {
    const char *url;
    const char *other_url; /* another way to the same store, for every second worker; NULL: none */
    char prefix[TORTURE_PREFIX_SIZE]; /* of the names of the locks; see torture_name */
    unsigned long holds;              /* ends after this many; 0: by time only */
    int64_t for_ns;                   /* how long at most */
    uint32_t ttl_ms;
    int workers;
    uint64_t seed;
    /* How often a worker is killed or cut off, or a holder is frozen: the time between two, half
     * more or less. 0: never. */
    int64_t every_ms[TORTURE_FAULTS];
    uint64_t freeze_ms;   /* by how much a freeze is at least longer than the ttl */
    bool until_overtaken; /* and it lasts until somebody else has had the lock */
    int frozen_max;       /* workers that are frozen at the same time */
    int stop_fd;          /* ends when it becomes readable; -1: none */
    bool talks;           /* breaches are printed as they come */
};

/* What a worker says of itself. Its killer sets doomed before the signal: a hold that ends that way
 * may be followed by another at once. */
struct torture_worker {
    pid_t pid;
    atomic_bool doomed;
    atomic_bool writing; /* has the referee's mutex: not to be frozen now */
    atomic_int lock;     /* -1: holds none */
    atomic_ullong token;
    atomic_llong until_ns;  /* valid before this */
    atomic_llong cut_ns;    /* cut off until then */
    atomic_ulong cut_count; /* connections that it has cut */
    /* The driver's. */
    int64_t thaw_ns; /* frozen until then, or 0 */
    int frozen_lock; /* what it held then, -1: nothing */
    unsigned long long frozen_token;
};

/* One lock's data. The counters are changed under the referee's mutex only. */
struct torture_ledger {
    uint64_t mark; /* of the fence */
    uint64_t fenced, fenced_writes;
    uint64_t plain, plain_writes;
    atomic_ullong last_token;
    atomic_llong last_hold_ns;
    atomic_llong longest_gap_ns;
    /* When its holder was killed or frozen, until somebody has it again; 0: nobody was. */
    atomic_llong orphaned_ns[TORTURE_FAULTS];
};

/* Times from the fault of a holder until the next one had the lock. */
struct torture_handovers {
    atomic_uint count;
    int64_t ns[TORTURE_HANDOVERS_MAX];
};

/* In memory that all of them share. */
struct torture_referee {
    const struct torture_plan *plan;
    pthread_mutex_t mutex; /* robust */
    struct torture_ledger ledgers[TORTURE_LOCKS];
    struct torture_worker workers[TORTURE_WORKERS_MAX];
    int over_fd;      /* an eventfd, readable once it is over: ends the waits of workers */
    atomic_bool over; /* workers end their hold and themselves */
    atomic_ulong holds, stale, overlaps, disorders, answers[TORTURE_STATUSES];
    atomic_llong longest_wait_ns;
    struct torture_handovers handovers[TORTURE_FAULTS];
    /* The last text of each status; torn is good enough. */
    char troubles[TORTURE_STATUSES][HF_ERROR_TEXT_SIZE];
    atomic_uint breach_count;
    char breaches[TORTURE_BREACHES_MAX][TORTURE_BREACH_SIZE];
};

/* A point of the curve of lost updates. */
struct torture_sample {
    int64_t at_ns; /* since the start */
    uint64_t fenced_lost, plain_lost;
};

/* The driver's own book. */
struct torture_story {
    unsigned long faults[TORTURE_FAULTS];
    int64_t marks_ns[TORTURE_FAULTS][TORTURE_MARKS_MAX]; /* when, since the start */
    struct torture_sample samples[TORTURE_SAMPLES_MAX];
    size_t sample_count;
    int64_t lasted_ns;
    bool stopped; /* by stop_fd */
};

/* What it comes to. */
struct torture_verdict {
    uint64_t fenced_writes, fenced_lost;
    uint64_t plain_writes, plain_lost;
    int64_t longest_gap_ns; /* between two holds of a lock */
    unsigned long cut_connections;
    bool sound; /* no overlap, no disorder, nothing lost behind the fence */
};

/* The name of a lock. */
enum { TORTURE_NAME_SIZE = TORTURE_PREFIX_SIZE + 8 };
const char *torture_name(const struct torture_plan *plan, int lock, char out[TORTURE_NAME_SIZE]);

/* referee.c. NULL: no memory. The plan must live as long, and stay as it is. */
struct torture_referee *torture_referee_new(const struct torture_plan *plan);
void torture_referee_free(struct torture_referee *referee);
/* Around whatever happens to the counters. */
void torture_section_enter(struct torture_referee *referee, struct torture_worker *me);
void torture_section_leave(struct torture_referee *referee, struct torture_worker *me);
/* A lease that was just granted: false if it is over already. Published so that others see it. */
bool torture_publish(struct torture_worker *me, struct hf_lease *lease, int lock);
/* Judges it beside all others, and notes when it came; asked_ns: when it was wanted. */
void torture_judge(struct torture_referee *referee, struct torture_worker *me,
                   struct hf_lease *lease, int lock, int64_t asked_ns);
void torture_note(struct torture_referee *referee, enum hf_status status,
                  const struct hf_error *err);
struct torture_verdict torture_sum(const struct torture_referee *referee);
/* Sorted in place; -1 if there are none. per_mille 500: the median; 1000: the longest. */
int64_t torture_handover_ns(struct torture_handovers *handovers, unsigned per_mille);

/* worker.c: takes, holds and gives back until it is over; then ends the process. */
void torture_work(struct torture_referee *referee, struct torture_worker *me, uint64_t stream)
    __attribute__((noreturn));
/* Where a worker has over_fd. */
enum { TORTURE_OVER_FD = 3 };

/* cut.c: a thread that cuts this process's connections while the worker is to be cut off. */
void torture_cut_start(struct torture_worker *me);

/* random numbers, of one stream each: xorshift64, never from 0 */
uint64_t torture_random(uint64_t *state);
int64_t torture_below(uint64_t *state, uint64_t bound);

/* driver.c: all of it, until it is over and no worker is left. story comes zeroed. False with
 * errno: a worker could not be started. */
bool torture_run(struct torture_referee *referee, struct torture_story *story);

#endif /* HF_TORTURE_TORTURE_H */
