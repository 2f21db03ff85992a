/* test_serve_attempts.c - an owner is one attempt is one request; and what valid_ms counts.
 * run: threads */
#include "../support/check.h"

#include "serve/attempts.h"
#include "serve/handler.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void owner_of(char out[HF_OWNER_LEN + 1], unsigned number)
{
    (void)snprintf(out, HF_OWNER_LEN + 1, "%032x", number);
}

static enum hf_status begin_and_end(struct attempts *attempts, unsigned number)
{
    char owner[HF_OWNER_LEN + 1];
    struct attempt *attempt;
    enum hf_status status;

    owner_of(owner, number);
    status = attempts_begin(attempts, owner, -1, &attempt);
    if (status == HF_OK)
        attempts_end(attempts, attempt);
    return status;
}

static void an_owner_is_used_once(void **state)
{
    struct attempts *attempts = attempts_open();
    char owner[HF_OWNER_LEN + 1];
    struct attempt *attempt, *second;

    (void)state;
    owner_of(owner, 7);
    assert_int_equal(attempts_begin(attempts, owner, -1, &attempt), HF_OK);
    assert_int_equal(attempts_begin(attempts, owner, -1, &second), HF_UNKNOWN);
    attempts_end(attempts, attempt);
    assert_int_equal(attempts_begin(attempts, owner, -1, &second), HF_UNKNOWN);
    assert_int_equal(begin_and_end(attempts, 8), HF_OK);
    attempts_close(attempts);
}

static void the_last_8192_are_remembered(void **state)
{
    struct attempts *attempts = attempts_open();

    (void)state;
    for (unsigned i = 0; i < 8192; i++)
        assert_int_equal(begin_and_end(attempts, i), HF_OK);
    assert_int_equal(begin_and_end(attempts, 0), HF_UNKNOWN);
    for (unsigned i = 8192; i < 8200; i++)
        assert_int_equal(begin_and_end(attempts, i), HF_OK);
    assert_int_equal(begin_and_end(attempts, 0), HF_OK);
    assert_int_equal(begin_and_end(attempts, 8199), HF_UNKNOWN);
    attempts_close(attempts);
}

/* One that releases. */
struct releaser {
    struct attempts *attempts;
    char owner[HF_OWNER_LEN + 1];
    atomic_bool done;
};

static void *settle(void *data)
{
    struct releaser *releaser = data;

    attempts_settle(releaser->attempts, releaser->owner);
    releaser->done = true;
    return NULL;
}

static void a_release_cancels_and_waits_for_its_acquire(void **state)
{
    struct releaser releaser = {.attempts = attempts_open()};
    struct pollfd cancelled = {.fd = eventfd(0, EFD_NONBLOCK), .events = POLLIN};
    struct attempt *attempt;
    pthread_t thread;

    (void)state;
    owner_of(releaser.owner, 9);
    assert_int_equal(attempts_begin(releaser.attempts, releaser.owner, cancelled.fd, &attempt),
                     HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, settle, &releaser), 0);
    assert_int_equal(poll(&cancelled, 1, 10000), 1);
    assert_false(releaser.done);
    attempts_end(releaser.attempts, attempt);
    pthread_join(thread, NULL);
    assert_true(releaser.done);
    (void)close(cancelled.fd);
    attempts_close(releaser.attempts);
}

static void a_release_that_came_first_ends_the_owner(void **state)
{
    struct attempts *attempts = attempts_open();
    char owner[HF_OWNER_LEN + 1];

    (void)state;
    owner_of(owner, 10);
    attempts_settle(attempts, owner);
    attempts_settle(attempts, owner);
    assert_int_equal(begin_and_end(attempts, 10), HF_UNKNOWN);
    attempts_close(attempts);
}

/* Counted from the sending: never more than from the grant, however slow the client's clock. */
static void valid_ms_counts_from_the_sending(void **state)
{
    const int64_t ms = 1000000;

    (void)state;
    assert_int_equal(handler_after_ms(5 * ms, 5 * ms + 999999), 0);
    assert_int_equal(handler_after_ms(5 * ms, 1205 * ms + 1), 1200);
    assert_int_equal(handler_after_ms(5 * ms, 4 * ms), 0);
    assert_int_equal(handler_valid_ms(0, 30000, 30000), 30000 - 302);
    assert_int_equal(handler_valid_ms(1200, 30000, 30000), 1188 + 30000 - 302);
    assert_int_equal(handler_valid_ms(1201, 30000, 30000), 1188 + 30000 - 302);
    assert_int_equal(handler_valid_ms(0, 1000, 30000), 1000 - 302);
    assert_int_equal(handler_valid_ms(0, 100, 30000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_is_used_once),
        cmocka_unit_test(the_last_8192_are_remembered),
        cmocka_unit_test(a_release_cancels_and_waits_for_its_acquire),
        cmocka_unit_test(a_release_that_came_first_ends_the_owner),
        cmocka_unit_test(valid_ms_counts_from_the_sending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
