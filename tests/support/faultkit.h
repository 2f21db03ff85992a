/* faultkit.h - what the fault tests share: places to work in, children that die, a system under the
 * embedded store that fails, stops or kills at a chosen call, clocks and boot ids that lie.
 *
 * HOLDFAST_SEED sets the seed of what is random (it is printed when a test fails), HOLDFAST_LONG=1
 * runs ten times longer. */
#ifndef HF_TESTS_FAULTKIT_H
#define HF_TESTS_FAULTKIT_H

#include "base/base.h"
#include "stores/file/file.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

/* Random numbers that a seed repeats. */
struct kit_rng {
    uint64_t state;
};
uint64_t kit_seed(void);
struct kit_rng kit_rng(uint64_t stream);
uint64_t kit_below(struct kit_rng *rng, uint64_t limit);

/* n, or a fifth of it under a sanitizer, or ten times that with HOLDFAST_LONG=1. */
long kit_rounds(long n);

/* A fresh private folder, gone when the program ends. The path lives until then. */
const char *kit_dir(void);
/* The same in memory, if there is such a place: for tests that make files by the thousand. */
const char *kit_fast_dir(void);
void kit_remove(const char *path);
/* Files of a folder below path whose name starts with prefix; hidden ones only if prefix is ".". */
long kit_count(const char *path, const char *folder, const char *prefix);
/* The path of the one slot file in a store's folder. */
const char *kit_slots(const char *path);
/* Copies a store's files (not its FIFOs) to another folder. */
void kit_copy(const char *from, const char *to);
long kit_open_fds(void);

/* Runs fn in a child that dies with us. It exits 0 when fn returns. */
pid_t kit_spawn(void (*fn)(void *), void *data);
/* Waits for a child to end, a minute at most; returns its status as of waitpid. */
int kit_wait(pid_t pid);
/* Waits until a child is stopped. */
void kit_wait_stopped(pid_t pid);
/* Says what went wrong and ends the child with 1. */
void kit_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void kit_sleep_ms(int64_t ms);

/* The calls of struct hf__file_sys that a plan can be about. */
enum kit_op {
    KIT_PREAD = 1,
    KIT_PWRITE = 2,
    KIT_OPENAT = 4,
    KIT_FSYNC = 8,
    KIT_RENAME = 16,
    KIT_CHANGES = KIT_PWRITE | KIT_OPENAT | KIT_FSYNC | KIT_RENAME,
    KIT_ALL = 31,
    KIT_STEP = 32, /* not a call: steps.h */
    KIT_PAGES = 64 /* each pwrite of more than a slot */
};
enum kit_action {
    KIT_COUNT,       /* nothing: only count */
    KIT_FAIL,        /* fails with plan.error and has no effect */
    KIT_FAIL_AFTER,  /* has its effect and fails all the same */
    KIT_SHORT,       /* pwrite: half of it is written, no error */
    KIT_TORN,        /* pwrite: half of it is written, then kill -9;
                      * pread: half of it is something else */
    KIT_KILL_BEFORE, /* kill -9 */
    KIT_KILL_AFTER,
    KIT_STOP_BEFORE, /* SIGSTOP, and on it goes when continued */
    KIT_STOP_AFTER,
};
/* What happens at the at-th call (from 1) of one of ops; or from there on, if lasting. */
struct kit_plan {
    unsigned ops;
    enum kit_action action;
    long at;
    int error;
    bool lasting;
    long seen; /* how many calls there were */
};
extern struct kit_plan kit_plan;

/* Where the store believes to be. NULL, 0 and false: the truth. */
struct kit_world {
    const char *boot_id;
    uint64_t time_namespace;
    bool wall_fake;
    int64_t wall_us;
    bool now_fake;
    int64_t now_ns;
    bool no_fsync; /* fsync does nothing and says it did */
};
extern struct kit_world kit_world;

/* Its new stores have guarded words, so that a plan sees every change of them: KIT_MAPPED=1 in the
 * environment makes kit_open take the other one, whose words are mapped where that is possible. */
extern const struct hf__file_sys kit_sys;
extern const struct hf__file_sys kit_mapped_sys;
extern const struct hf_host kit_host;

/* A store on kit_sys and kit_host, at the level of its table of operations. */
enum hf_status kit_try_open_within(const char *dir, int64_t patience_ms, struct hf_store_base **out,
                                   struct hf_error *err);
enum hf_status kit_try_open(const char *dir, struct hf_store_base **out, struct hf_error *err);
struct hf_store_base *kit_open(const char *dir);
void kit_close(struct hf_store_base *base);
/* The same with libholdfast around it. */
struct hf_store *kit_open_client(const char *dir);

struct kit_hold {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    uint64_t token;
    uint32_t ttl_ms;
    bool detached;
};
#define KIT_PATIENCE_MS 5000
struct kit_terms {
    uint32_t ttl_ms;
    int64_t wait_ms;     /* below 0: without limit */
    int64_t patience_ms; /* of a single request; 0: KIT_PATIENCE_MS */
    bool detached;
};
enum hf_status kit_take_on(struct hf_store_base *base, const char *name,
                           const struct kit_terms *terms, struct kit_hold *out,
                           struct hf_error *err);
enum hf_status kit_take(struct hf_store_base *base, const char *name, uint32_t ttl_ms,
                        int64_t wait_ms, struct kit_hold *out, struct hf_error *err);
/* A detached one. */
enum hf_status kit_take_detached(struct hf_store_base *base, const char *name, uint32_t ttl_ms,
                                 struct kit_hold *out, struct hf_error *err);
enum hf_status kit_renew(struct hf_store_base *base, const struct kit_hold *hold,
                         struct hf_error *err);
enum hf_status kit_drop(struct hf_store_base *base, const struct kit_hold *hold,
                        struct hf_error *err);
/* Takes and gives back, fails the test otherwise; returns the token. */
uint64_t kit_pair(struct hf_store_base *base, const char *name);
/* How many wait for a lock. */
uint64_t kit_waiters(struct hf_store_base *base, const char *name);
/* Waits until count of them do, and their holder knows. */
void kit_until_waiting(struct hf_store_base *base, const char *name, uint64_t count);
/* The status is `want`; says what it was and the text otherwise. */
void kit_expect(enum hf_status got, enum hf_status want, const struct hf_error *err);

/* Runs the tests as one TAP stream and names the seed if they fail. */
#define KIT_RUN(tests) kit_finish(cmocka_run_group_tests(tests, kit_begin, NULL))
int kit_begin(void **state);
int kit_finish(int failed);

#endif /* HF_TESTS_FAULTKIT_H */
