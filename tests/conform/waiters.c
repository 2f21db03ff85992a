/* waiters.c - who waits, told by name. */
#include "client/client.h"
#include "conform.h"

#include <pthread.h>
#include <string.h>

enum { WAITERS = 3 };

struct waiter {
    pthread_t thread;
    struct hf_store_base *store;
    struct hold hold;
    enum hf_status status;
};

static void *wait_in_line(void *data)
{
    struct waiter *waiter = data;

    waiter->status = take(waiter->store, &waiter->hold, LONG_TTL_MS, 6 * SOON_MS);
    if (waiter->status == HF_OK)
        waiter->status = release(waiter->store, &waiter->hold);
    return NULL;
}

/* What was told. */
struct told {
    unsigned count, enough;
    int64_t waited_ms; /* of the last one told */
    bool named;        /* all of them */
    bool in_order;
};

static bool hear(const struct hf_waiter *waiter, void *data)
{
    struct told *told = data;

    told->in_order = told->in_order && (told->count == 0 || waiter->waited_ms < 0 ||
                                        waiter->waited_ms <= told->waited_ms);
    told->named = told->named && strcmp(waiter->label, "host/1/conform") == 0;
    told->waited_ms = waiter->waited_ms;
    return ++told->count < told->enough;
}

static struct told told_of(struct hf_store_base *store, const char *name, unsigned enough)
{
    struct told told = {.enough = enough, .named = true, .in_order = true};
    struct hf_query query = {
        .name = name, .exact = true, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct hf_error err;

    assert_int_equal(store->ops->waiters(store, &query, hear, &told, &err), HF_OK);
    return told;
}

static void who_waits_is_told(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("who waits");
    struct waiter waiters[WAITERS];
    struct told told;

    (void)state;
    assert_int_equal(told_of(store, hold.name, WAITERS + 1).count, 0);
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(told_of(store, hold.name, WAITERS + 1).count,
                     0); /* whoever holds it no longer waits */
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.store = client_open(), .hold = hold_same(&hold)};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_in_line, &waiters[i]), 0);
        await_line(store, hold.name, i + 1);
    }
    told = told_of(store, hold.name, WAITERS + 1);
    assert_int_equal(told.count, WAITERS);
    assert_true(told.named);
    assert_true(told.in_order); /* those who came later have waited for less time */
    assert_true(told.waited_ms < SOON_MS);
    assert_int_equal(told_of(store, hold.name, 1).count, 1); /* nobody wanted to hear more */
    assert_int_equal(release(store, &hold), HF_OK);
    for (unsigned i = 0; i < WAITERS; i++) {
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
        assert_int_equal(waiters[i].status, HF_OK);
        client_close(waiters[i].store);
    }
    assert_int_equal(told_of(store, hold.name, WAITERS + 1).count, 0);
    client_close(store);
}

void add_waiter_tests(struct suite *suite)
{
    struct hf_store_base *store = client_open();

    if (HF__OPERATION(store->ops, waiters) != NULL)
        ADD(suite, who_waits_is_told);
    client_close(store);
}
