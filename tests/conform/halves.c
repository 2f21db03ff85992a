/* halves.c - calls that one thread begins and another ends, through libholdfast: in a store with
 * the slots for it, and in one without, where the end does it all. */
#include "client/client.h"
#include "conform.h"

#include <holdfast/begin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TURNS = 50, LOOK_US = 2000 };

static struct hf_store *library_open(void)
{
    struct hf_store *store;

    assert_int_equal(hf_open(conform.url, &store, NULL), HF_OK);
    return store;
}

/* CONFORM_WHOLE=1: it could, but has to wait where it is now. */
static bool in_halves(const struct hf_store *store)
{
    return HF__OPERATION(store->base->ops, begin) != NULL && getenv("CONFORM_WHOLE") == NULL;
}

/* The end of a call, on a thread of its own. */
struct ending {
    struct hf_call *call;
    struct hf_lease *lease;
    struct hf_error err;
    enum hf_status status;
    pthread_t thread;
};

static void *end_acquire(void *data)
{
    struct ending *ending = data;

    ending->status = hf_end_acquire(ending->call, &ending->lease, &ending->err);
    return NULL;
}

static void end_elsewhere(struct ending *ending, struct hf_call *call)
{
    ending->call = call;
    assert_non_null(call);
    assert_int_equal(pthread_create(&ending->thread, NULL, end_acquire, ending), 0);
}

static void what_one_thread_begins_another_ends(void **state)
{
    struct hf_store *store = library_open();
    char name[HF_NAME_MAX + 1];
    uint64_t last = 0;

    (void)state;
    fresh_name(name, "halves");
    for (int i = 0; i < TURNS; i++) {
        struct ending ending = {0};
        struct hf_call *call;

        end_elsewhere(&ending, hf_begin_acquire(store, name, NULL));
        pthread_join(ending.thread, NULL);
        assert_int_equal(ending.status, HF_OK);
        assert_true(hf_lease_token(ending.lease) > last);
        assert_true(hf_lease_remaining_ms(ending.lease) > 0);
        last = hf_lease_token(ending.lease);
        call = hf_begin_release(ending.lease);
        assert_non_null(call);
        assert_int_equal(hf_end_release(call, NULL), HF_OK);
        assert_false(is_held(store->base, name));
    }
    hf_close(store);
}

/* A store that can is asked at the beginning, not at the end. */
static void an_answer_comes_between_the_halves(void **state)
{
    struct hf_store *store = library_open();
    int answered = 0;
    char name[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(name, "answered");
    for (int i = 0; i < TURNS; i++) {
        struct hf_call *call = hf_begin_acquire(store, name, NULL);
        struct hf_lease *lease;

        assert_non_null(call);
        if (hf_call_answered(call, LOOK_US)) {
            answered++;
            assert_true(is_held(store->base, name));
        }
        assert_int_equal(hf_end_acquire(call, &lease, NULL), HF_OK);
        call = hf_begin_release(lease);
        assert_non_null(call);
        if (hf_call_answered(call, LOOK_US))
            assert_false(is_held(store->base, name));
        assert_int_equal(hf_end_release(call, NULL), HF_OK);
    }
    assert_true(in_halves(store) ? answered > 0 : answered == 0);
    hf_close(store);
}

static void busy_is_told_by_the_end(void **state)
{
    struct hf_store *store = library_open();
    struct hf_acquire_options options = {.size = sizeof options, .label = "host/1/first"};
    struct hf_lease *lease, *none;
    struct hf_call *call;
    struct hf_error err;
    char name[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(name, "busy");
    assert_int_equal(hf_acquire(store, name, &options, &lease, NULL), HF_OK);
    call = hf_begin_acquire(store, name, NULL);
    assert_non_null(call);
    (void)hf_call_answered(call, LOOK_US);
    assert_int_equal(hf_end_acquire(call, &none, &err), HF_BUSY);
    assert_null(none);
    assert_non_null(strstr(err.text, "host/1/first"));
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    hf_close(store);
}

static void a_wait_begun_here_is_ended_there(void **state)
{
    struct hf_store *store = library_open();
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = SOON_MS};
    struct ending ending = {0};
    struct hf_lease *lease;
    struct hf_call *call;
    char name[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(name, "wait");
    assert_int_equal(hf_acquire(store, name, NULL, &lease, NULL), HF_OK);
    call = hf_begin_acquire(store, name, &options);
    assert_non_null(call);
    assert_false(hf_call_answered(call, LOOK_US)); /* the end would wait */
    end_elsewhere(&ending, call);
    if (has(HF_FEATURE_FAIR))
        check_soon(waiters_of(store->base, name) > 0);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    pthread_join(ending.thread, NULL);
    assert_int_equal(ending.status, HF_OK);
    assert_int_equal(hf_release(ending.lease, NULL), HF_OK);
    hf_close(store);
}

static void a_wait_begun_here_is_cancelled(void **state)
{
    struct hf_store *store = library_open();
    struct hf_acquire_options options = {
        .size = sizeof options, .wait_ms = -1, .cancel_fd = eventfd(0, EFD_CLOEXEC)};
    struct ending ending = {0};
    struct hf_lease *lease;
    char name[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(name, "cancel");
    assert_int_equal(hf_acquire(store, name, NULL, &lease, NULL), HF_OK);
    end_elsewhere(&ending, hf_begin_acquire(store, name, &options));
    assert_int_equal(eventfd_write(options.cancel_fd, 1), 0);
    pthread_join(ending.thread, NULL);
    assert_int_equal(ending.status, HF_CANCELLED);
    assert_null(ending.lease);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_false(is_held(store->base, name)); /* nobody was left in the queue to get it */
    (void)close(options.cancel_fd);
    hf_close(store);
}

static void the_end_tells_what_was_wrong_at_the_beginning(void **state)
{
    struct hf_store *store = library_open();
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = 1};
    struct hf_lease *lease;
    struct hf_error err;
    struct hf_call *call = hf_begin_acquire(store, "a\nb", NULL);

    (void)state;
    assert_non_null(call);
    assert_false(hf_call_answered(call, LOOK_US));
    assert_int_equal(hf_end_acquire(call, &lease, &err), HF_INVALID);
    assert_null(lease);
    assert_int_equal(err.code, HF_INVALID);
    call = hf_begin_acquire(store, "halves", &options);
    assert_non_null(call);
    assert_int_equal(hf_end_acquire(call, &lease, NULL), HF_INVALID);
    call = hf_begin_release(NULL);
    assert_non_null(call);
    assert_int_equal(hf_end_release(call, &err), HF_OK);
    hf_close(store);
}

void add_halves_tests(struct suite *suite)
{
    ADD(suite, what_one_thread_begins_another_ends);
    ADD(suite, an_answer_comes_between_the_halves);
    ADD(suite, busy_is_told_by_the_end);
    ADD(suite, a_wait_begun_here_is_ended_there);
    ADD(suite, a_wait_begun_here_is_cancelled);
    ADD(suite, the_end_tells_what_was_wrong_at_the_beginning);
}
