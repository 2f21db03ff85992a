/* conform.h - what the parts of the conformance suite share.
 *
 * The suite speaks to struct hf_store_ops as libholdfast does, over a store named by a URL. Names
 * of locks are made fresh for every test and every run, so that a server with a past is no trouble.
 */
#ifndef HF_TESTS_CONFORM_H
#define HF_TESTS_CONFORM_H

#include "../support/check.h"
#include "base/base.h"
#include <holdfast/store.h>
#include <sys/types.h>

#define LONG_TTL_MS 60000 /* longer than any test: whoever gets the lock sooner was given it */
#define SOON_MS     10000 /* what a busy machine may need for something that happens at once */

struct conform {
    const char *url;
    unsigned features;
    uint32_t short_ttl_ms; /* CONFORM_TTL_MS: the shortest ttl that means something in this store */
};
extern struct conform conform;

/* One hold or attempt of one. */
struct hold {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    struct hf_grant grant;
    uint32_t ttl_ms;
    struct hf_revocation revocation; /* what the last renewal that was refused as broken told */
    struct hf_error err;
};

static inline bool has(unsigned feature)
{
    return (conform.features & feature) == feature;
}

/* A child that dies with us. To be called before the first client is opened. */
pid_t fork_child(void);

/* Another client of the store; fails the test if it cannot be had. */
struct hf_store_base *client_open(void);
void client_close(struct hf_store_base *store);
/* The same for forked children, where a test must not fail: NULL. */
struct hf_store_base *client_try_open(void);

/* A name that nobody else uses, with stem in it. */
void fresh_name(char *out, const char *stem);
/* A hold of a fresh name, not taken yet; and one of the same lock. */
struct hold hold_new(const char *stem);
struct hold hold_same(const struct hold *other);

/* The claim of a hold, with a deadline as libholdfast sets it. */
struct hf_claim claim_of(const struct hold *hold, uint32_t ttl_ms);
/* Takes with a fresh owner; wait_ms as in hf_acquire_options. */
enum hf_status take(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms,
                    int64_t wait_ms);
enum hf_status take_detached(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms);
enum hf_status take_cancel(struct hf_store_base *store, struct hold *hold, int cancel_fd);
enum hf_status renew(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms);
enum hf_status release(struct hf_store_base *store, struct hold *hold);
/* Until when the hold may be relied on. */
int64_t deadline_of(const struct hold *hold);

/* How many waiters the store counts for the lock; and whether it calls it held. */
uint64_t waiters_of(struct hf_store_base *store, const char *name);
/* Until that many wait; a store without a queue knows nobody, and is given a moment. */
void await_line(struct hf_store_base *store, const char *name, uint64_t count);
bool is_held(struct hf_store_base *store, const char *name);

/* The tests, by theme; each adds those that fit the store's features. */
struct suite {
    struct CMUnitTest tests[120];
    size_t count;
};
void suite_add(struct suite *suite, const char *name, CMUnitTestFunction test);
#define ADD(suite, test) suite_add(suite, #test, test)

/* Runs them and tells the results; how many failed. */
int suite_run(const struct suite *suite);

void add_hold_tests(struct suite *suite);
void add_renew_tests(struct suite *suite);
void add_list_tests(struct suite *suite);
void add_wait_tests(struct suite *suite);
void add_any_tests(struct suite *suite);
void add_crowd_tests(struct suite *suite);
void add_record_tests(struct suite *suite);
void add_break_tests(struct suite *suite);
void add_forget_tests(struct suite *suite);
void add_waiter_tests(struct suite *suite);
void add_twice_tests(struct suite *suite);
void add_halves_tests(struct suite *suite);
void add_once_tests(struct suite *suite);

#endif /* HF_TESTS_CONFORM_H */
