/* test_client_lease.c - a lease that is renewed, lost, given back, left or adopted; and listings.
 * run: threads */
#include "client.h"

#include <poll.h>
#include <string.h>

static void a_shorter_ttl_than_asked_for_counts(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(30000);
    struct hf_lease *lease;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.ttl_ms = 10000});
    lease = take(world, &options);
    assert_int_equal(hf_lease_ttl_ms(lease), 10000);
    assert_true(hf_lease_remaining_ms(lease) <= 10000 - 102);
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.ttl_ms = 5000});
    assert_int_equal(hf_renew(lease, 10000, NULL), HF_OK);
    assert_int_equal(hf_lease_ttl_ms(lease), 5000);
    /* A longer one does not. */
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.ttl_ms = 60000});
    assert_int_equal(hf_renew(lease, 5000, NULL), HF_OK);
    assert_int_equal(hf_lease_ttl_ms(lease), 5000);
    give(lease);
}

static void renewed_by_hand(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(10000);
    struct hf_lease *lease = take(world, &options);
    struct hf_error err;
    struct fake_call call;

    assert_int_equal(hf_renew(lease, 0, &err), HF_OK);
    call = fake_call(world->fake, FAKE_RENEW, 0);
    assert_int_equal(call.ttl_ms, 10000); /* as it has: 0 would only look */
    assert_int_equal(call.token, 1);
    assert_int_equal(call.kept, HF_KEPT_LATER);
    assert_int_equal(hf_renew(lease, 20000, &err), HF_OK);
    assert_int_equal(hf_lease_ttl_ms(lease), 20000);
    assert_true(hf_lease_remaining_ms(lease) > 11000);
    assert_int_equal(hf_renew(lease, 99, &err), HF_INVALID);
    assert_int_equal(hf_renew(lease, HF_TTL_MAX_MS + 1, &err), HF_INVALID);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 2);
    give(lease);
}

/* No answer is no loss: the old deadline stands, and the next renewal may succeed. */
static void renewals_without_an_answer(void **state)
{
    static const enum hf_status answers[] = {HF_UNKNOWN, HF_UNREACHABLE, HF_QUARANTINE, HF_DENIED};
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(10000);
    struct hf_lease *lease = take(world, &options);

    for (size_t i = 0; i < COUNT(answers); i++) {
        fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = answers[i]});
        check_row(hf_renew(lease, 0, NULL) == answers[i], i);
        check_row(hf_lease_loss(lease) == HF_LOSS_NONE, i);
        check_row(hf_lease_remaining_ms(lease) > 0, i);
    }
    /* It may have taken effect: a shorter ttl counts at once. */
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_UNKNOWN});
    assert_int_equal(hf_renew(lease, 4000, NULL), HF_UNKNOWN);
    assert_true(hf_lease_remaining_ms(lease) <= 3958);
    assert_int_equal(hf_renew(lease, 0, NULL), HF_OK);
    assert_true(hf_lease_remaining_ms(lease) > 4000);
    give(lease);
}

static void a_refused_renewal_is_the_end(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(10000);
    struct hf_lease *lease = take(world, &options);
    struct pollfd fd = {.fd = hf_lease_fd(lease), .events = POLLIN};
    struct hf_error err;

    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(hf_lease_fd(lease), fd.fd);
    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    assert_int_equal(hf_renew(lease, 0, &err), HF_LOST);
    assert_int_equal(err.code, HF_LOST);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_BROKEN);
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(poll(&fd, 1, 0), 1);
    /* Not asked again, whatever the store would say now. */
    assert_int_equal(hf_renew(lease, 0, &err), HF_LOST);
    assert_int_equal(hf_keep(lease, &err), HF_LOST);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 1);
    assert_int_equal(hf_release(lease, &err), HF_LOST);
    assert_non_null(strstr(err.text, "broke"));
}

/* A store that says "lost" without saying why. */
static void a_loss_always_has_a_reason(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(10000);
    struct hf_lease *lease = take(world, &options);

    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_LOST});
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    assert_true(hf_lease_loss(lease) != HF_LOSS_NONE);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

static void past_its_deadline_a_lease_is_lost_without_being_told(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(100);
    struct hf_lease *lease = take(world, &options);
    struct hf_error err;

    check_soon(hf_lease_remaining_ms(lease) <= 0);
    check_soon(hf_lease_loss(lease) == HF_LOSS_EXPIRED);
    assert_int_equal(hf_renew(lease, 0, &err), HF_LOST);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 0); /* not even asked for */
    assert_int_equal(hf_release(lease, &err), HF_LOST);
    /* Released all the same: the store may not know of it yet. */
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
}

/* Nothing has noticed the loss yet when the descriptor is made after the deadline. */
static void a_descriptor_made_after_the_loss_is_readable(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(100);
    struct hf_lease *lease = take(world, &options);
    struct pollfd fd = {.events = POLLIN};

    check_soon(hf_lease_loss(lease) == HF_LOSS_EXPIRED);
    fd.fd = hf_lease_fd(lease);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

static void answers_to_a_release(void **state)
{
    static const enum hf_status answers[] = {HF_LOST, HF_UNKNOWN, HF_UNREACHABLE, HF_CORRUPT};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct hf_lease *lease = take(world, NULL);
        struct hf_error err;

        fake_next(world->fake, FAKE_RELEASE, (struct fake_answer){.status = answers[i]});
        check_row(hf_release(lease, &err) == answers[i], i);
        check_row(err.code == answers[i], i);
    }
    assert_int_equal(hf_release(NULL, NULL), HF_OK);
    hf_leave(NULL);
    hf_close(NULL);
}

/* After the release there is no handle left to ask. */
static void a_release_says_why_it_was_lost(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(10000), brief = by_hand(100);
    enum hf_loss loss = HF_LOSS_CLOSED;
    struct hf_lease *lease = take(world, &options);
    struct hf_error err;

    assert_int_equal(hf_release_why(lease, &loss, &err), HF_OK);
    assert_int_equal(loss, HF_LOSS_NONE);
    lease = take(world, &options);
    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    assert_int_equal(hf_release_why(lease, &loss, &err), HF_LOST);
    assert_int_equal(loss, HF_LOSS_BROKEN);
    assert_int_equal(err.code, HF_LOST);
    lease = take(world, &brief);
    hf__sleep_ns(120 * HF__NS_PER_MS); /* nobody looks why */
    assert_int_equal(hf_release_why(lease, &loss, NULL), HF_LOST);
    assert_int_equal(loss, HF_LOSS_EXPIRED);
    /* Only the store knew better. */
    lease = take(world, &options);
    fake_next(world->fake, FAKE_RELEASE, (struct fake_answer){.status = HF_LOST});
    assert_int_equal(hf_release_why(lease, &loss, NULL), HF_LOST);
    assert_int_equal(loss, HF_LOSS_NONE);
    loss = HF_LOSS_TAKEN;
    assert_int_equal(hf_release_why(NULL, &loss, NULL), HF_OK);
    assert_int_equal(loss, HF_LOSS_NONE);
}

static void left_is_not_released(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};

    hf_leave(take(world, &options));
    hf_leave(take(world, NULL));
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 0);
}

static void adopted(void **state)
{
    static const char owner[] = "0123456789abcdefABCDEF0123456789";
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_error err;
    struct fake_call call;

    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.ttl_ms = 30000, .remaining_ms = 5000});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_OK);
    call = fake_call(world->fake, FAKE_RENEW, 0);
    assert_int_equal(call.ttl_ms, 0); /* only looks */
    assert_int_equal(call.token, 42);
    assert_true(call.detached);
    assert_string_equal(call.owner, "0123456789abcdefabcdef0123456789");
    assert_int_equal(hf_lease_token(lease), 42);
    assert_int_equal(hf_lease_ttl_ms(lease), 30000);
    assert_true(hf_lease_remaining_ms(lease) <= 5000 - 302);
    assert_true(hf_lease_remaining_ms(lease) > 0);
    assert_int_equal(hf_keep(lease, &err), HF_INVALID);
    give(lease);
}

static void adopting_what_is_not_held(void **state)
{
    static const char owner[] = "0123456789abcdef0123456789abcdef";
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_error err;
    size_t asked;

    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_LOST});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_LOST);
    assert_null(lease);
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.ttl_ms = 1000, .remaining_ms = 1});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_LOST);
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.status = HF_UNREACHABLE});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_UNREACHABLE);
    assert_null(lease);
    /* A store that does not know the ttl on record. */
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.remaining_ms = 5000});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_OK);
    assert_true(hf_lease_remaining_ms(lease) < 5000 && hf_lease_remaining_ms(lease) > 0);
    give(lease);
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){0});
    assert_int_equal(hf_adopt(world->store, "job", owner, 42, &lease, &err), HF_LOST);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    asked = fake_count(world->fake, FAKE_RENEW);
    assert_int_equal(hf_adopt(world->store, "job", "abc", 42, &lease, &err), HF_INVALID);
    assert_int_equal(hf_adopt(world->store, "job", NULL, 42, &lease, &err), HF_INVALID);
    assert_int_equal(hf_adopt(world->store, "job", owner, 0, &lease, &err), HF_INVALID);
    assert_int_equal(hf_adopt(world->store, "job", owner, UINT64_MAX, &lease, &err), HF_INVALID);
    assert_int_equal(hf_adopt(world->store, "", owner, 42, &lease, &err), HF_INVALID);
    assert_int_equal(hf_adopt(world->store, NULL, owner, 42, &lease, &err), HF_INVALID);
    assert_null(lease);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), asked);
}

static bool count_locks(const struct hf_lock_info *info, void *data)
{
    assert_string_equal(info->name, "a lock");
    ++*(int *)data;
    return true;
}

static void listings(void **state)
{
    struct world *world = *state;
    struct hf_error err;
    int seen = 0;

    assert_int_equal(hf_list(world->store, NULL, count_locks, &seen, &err), HF_OK);
    assert_string_equal(fake_call(world->fake, FAKE_LIST, 0).name, "");
    assert_int_equal(hf_inspect(world->store, "job", count_locks, &seen, &err), HF_OK);
    assert_int_equal(seen, 2);
    fake_next(world->fake, FAKE_LIST, (struct fake_answer){.status = HF_UNREACHABLE});
    assert_int_equal(hf_list(world->store, "a", count_locks, &seen, &err), HF_UNREACHABLE);
    assert_int_equal(err.code, HF_UNREACHABLE);
    assert_string_equal(hf_store_url(world->store), "fake://u@host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(a_shorter_ttl_than_asked_for_counts),
        with_store(renewed_by_hand),
        with_store(renewals_without_an_answer),
        with_store(a_refused_renewal_is_the_end),
        with_store(a_loss_always_has_a_reason),
        with_store(past_its_deadline_a_lease_is_lost_without_being_told),
        with_store(a_descriptor_made_after_the_loss_is_readable),
        with_store(answers_to_a_release),
        with_store(a_release_says_why_it_was_lost),
        with_store(left_is_not_released),
        with_store(adopted),
        with_store(adopting_what_is_not_held),
        with_store(listings),
    };

    return cmocka_run_group_tests_name("client_lease", tests, NULL, NULL);
}
