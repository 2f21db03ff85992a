/* forget.c - a name that nobody will use again. */
#include "client/client.h"
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>

enum { RACES = 100 };

static enum hf_status forget(struct hf_store_base *store, const char *name)
{
    struct hf_error report = {.code = HF_OK, .text = ""};
    int64_t deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;

    return store->ops->forget(store, name, deadline_ns, &report);
}

/* Of several servers one may hear of the release a moment later. */
static enum hf_status forget_soon(struct hf_store_base *store, const char *name)
{
    int64_t until_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    enum hf_status status;

    while ((status = forget(store, name)) == HF_BUSY && hf__now_ns() < until_ns)
        hf__sleep_ns(HF__NS_PER_MS);
    return status;
}

static void a_free_name_is_forgotten(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("forget");

    (void)state;
    assert_int_equal(forget(store, hold.name), HF_OK); /* nobody has used it */
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(forget_soon(store, hold.name), HF_OK);
    assert_int_equal(forget(store, hold.name), HF_OK);
    assert_false(is_held(store, hold.name));
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST); /* what is over stays over */
    assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(forget_soon(store, hold.name), HF_OK);
    client_close(store);
}

struct heir {
    struct hf_store_base *store;
    struct hold hold;
    enum hf_status status;
};

static void *inherit(void *data)
{
    struct heir *heir = data;

    heir->status = take(heir->store, &heir->hold, LONG_TTL_MS, 6 * SOON_MS);
    return NULL;
}

static void what_is_held_or_waited_for_is_not(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("forget held");
    struct heir heir = {.store = client_open(), .hold = hold_same(&hold)};
    pthread_t thread;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(forget(other, hold.name), HF_BUSY);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, inherit, &heir), 0);
    await_line(store, hold.name, 1);
    assert_int_equal(forget(other, hold.name), HF_BUSY);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(heir.status, HF_OK); /* it kept its place */
    assert_true(heir.hold.grant.token > hold.grant.token);
    assert_int_equal(forget(other, hold.name), HF_BUSY);
    assert_int_equal(release(heir.store, &heir.hold), HF_OK);
    assert_int_equal(forget_soon(other, hold.name), HF_OK);
    client_close(heir.store);
    client_close(store);
    client_close(other);
}

/* One who forgets the name again and again. */
struct eraser {
    struct hf_store_base *store;
    const char *name;
    atomic_bool stop;
    int wrong; /* answers that it must not get */
};

static void *erase(void *data)
{
    struct eraser *eraser = data;

    while (!atomic_load(&eraser->stop)) {
        enum hf_status status = forget(eraser->store, eraser->name);

        eraser->wrong += status != HF_OK && status != HF_BUSY;
    }
    return NULL;
}

/* A try that does not get through, because somebody erases as fast as we write, is repeated. */
static enum hf_status take_meanwhile(struct hf_store_base *store, struct hold *hold)
{
    int64_t end_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    enum hf_status status;

    do {
        status = take(store, hold, LONG_TTL_MS, SOON_MS);
    } while (status == HF_UNREACHABLE && hf__now_ns() < end_ns);
    return status;
}

/* To look and to forget is one step: what was taken in between is not forgotten. */
static void who_takes_it_meanwhile_holds_it(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("forget race");
    struct eraser eraser = {.store = client_open(), .name = hold.name};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, erase, &eraser), 0);
    for (int i = 0; i < RACES; i++) {
        assert_int_equal(take_meanwhile(store, &hold), HF_OK);
        assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
        assert_true(is_held(store, hold.name));
        assert_int_equal(release(store, &hold), HF_OK);
    }
    atomic_store(&eraser.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(eraser.wrong, 0);
    client_close(eraser.store);
    client_close(store);
}

void add_forget_tests(struct suite *suite)
{
    struct hf_store_base *store = client_open();
    bool there = HF__OPERATION(store->ops, forget) != NULL;

    client_close(store);
    if (!there)
        return;
    ADD(suite, a_free_name_is_forgotten);
    ADD(suite, what_is_held_or_waited_for_is_not);
    ADD(suite, who_takes_it_meanwhile_holds_it);
}
