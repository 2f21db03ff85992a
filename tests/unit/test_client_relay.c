/* test_client_relay.c - what a relay asks of a store for others, and what it does not let pass. */
#include "client.h"

#include <holdfast/relay.h>
#include <string.h>

#define OWNER "00112233445566778899aabbccddeeff"

static struct hf_claim claim(uint64_t token, uint32_t ttl_ms)
{
    return (struct hf_claim){
        .name = "job", .owner = OWNER, .token = token, .ttl_ms = ttl_ms, .cancel_fd = -1};
}

static void an_acquire_is_the_callers(void **state)
{
    struct world *world = *state;
    struct hf_claim asked = claim(0, 1234);
    struct hf_error err = {.code = HF_NOMEM, .text = "old"};
    int64_t before_ns = hf__now_ns();
    struct hf_grant grant;
    struct fake_call call;

    asked.label = "worker\n7";
    asked.wait_until_ns = 42;
    asked.cancel_fd = 0;
    asked.kept = HF_KEPT_NOW;
    assert_int_equal(hf_relay_acquire(world->store, &asked, &grant, &err), HF_OK);
    assert_int_equal(err.code, HF_OK);
    assert_string_equal(err.text, "");
    call = fake_call(world->fake, FAKE_ACQUIRE, 0);
    assert_string_equal(call.name, "job");
    assert_string_equal(call.owner, OWNER);
    assert_string_equal(call.label, "worker?7");
    assert_int_equal(call.ttl_ms, 1234);
    assert_true(call.wait_until_ns == 42);
    assert_int_equal(call.cancel_fd, 0);
    assert_true(call.detached);
    assert_int_equal(call.kept, HF_KEPT_NEVER);
    assert_true(call.deadline_ns >= before_ns + 5 * HF__NS_PER_S);
    assert_int_equal(grant.token, 1);
    assert_string_equal(grant.owner, OWNER);
    assert_int_equal(grant.ttl_ms, 1234);
    assert_true(grant.sent_at_ns >= before_ns);
    /* And nobody here takes care of it: it is neither renewed nor given back. */
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 0);
}

static void a_renewal_and_a_release_ask_once(void **state)
{
    struct world *world = *state;
    struct hf_claim held = claim(7, 1234);
    struct hf_revocation revocation;
    struct hf_grant grant = {.token = 99, .revocation = &revocation};

    held.deadline_ns = hf__now_ns() + HF__NS_PER_S;
    assert_int_equal(hf_relay_renew(world->store, &held, &grant, NULL), HF_OK);
    assert_int_equal(grant.ttl_ms, 1234);
    assert_int_equal(grant.token, 0);
    assert_ptr_equal(grant.revocation, &revocation);
    assert_int_equal(fake_call(world->fake, FAKE_RENEW, 0).token, 7);
    assert_true(fake_call(world->fake, FAKE_RENEW, 0).deadline_ns == held.deadline_ns);
    assert_true(fake_call(world->fake, FAKE_RENEW, 0).detached);

    held.ttl_ms = 0; /* a look */
    fake_next(world->fake, FAKE_RENEW, (struct fake_answer){.ttl_ms = 5000, .remaining_ms = 77});
    assert_int_equal(hf_relay_renew(world->store, &held, &grant, NULL), HF_OK);
    assert_int_equal(grant.ttl_ms, 5000);
    assert_int_equal(grant.remaining_ms, 77);

    assert_int_equal(hf_relay_release(world->store, &held, NULL), HF_OK);
    held.token = 0; /* whatever it holds */
    assert_int_equal(hf_relay_release(world->store, &held, NULL), HF_OK);
    assert_int_equal(fake_call(world->fake, FAKE_RELEASE, 0).token, 7);
    assert_int_equal(fake_call(world->fake, FAKE_RELEASE, 1).token, 0);
    assert_string_equal(fake_call(world->fake, FAKE_RELEASE, 1).owner, OWNER);
    assert_int_equal(fake_count(world->fake, FAKE_RENEW), 2);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

/* Nothing of this reaches the store. */
static void what_is_refused(void **state)
{
    static const char *const owners[] = {NULL,
                                         "",
                                         "00112233445566778899aabbccddeef",
                                         OWNER "0",
                                         "00112233445566778899AABBCCDDEEFF",
                                         "00112233445566778899aabbccddeefg"};
    static const char *const names[] = {NULL, "", "a\nb"};
    static const uint32_t ttls[] = {1, HF_TTL_MIN_MS - 1, HF_TTL_MAX_MS + 1};
    struct world *world = *state;
    struct hf_store *store = world->store;
    struct hf_grant grant = {0};
    struct hf_error err;
    struct hf_claim bad;

    for (size_t i = 0; i < COUNT(owners); i++) {
        bad = claim(0, 1000);
        bad.owner = owners[i];
        check_row(hf_relay_acquire(store, &bad, &grant, &err) == HF_INVALID, i);
        check_row(owners[i] == NULL || owners[i][0] == '\0' || strstr(err.text, owners[i]) == NULL,
                  i);
        check_row(hf_relay_release(store, &bad, &err) == HF_INVALID, i);
        bad.token = 1;
        check_row(hf_relay_renew(store, &bad, &grant, &err) == HF_INVALID, i);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        bad = claim(0, 1000);
        bad.name = names[i];
        check_row(hf_relay_acquire(store, &bad, &grant, &err) == HF_INVALID, i);
    }
    for (size_t i = 0; i < COUNT(ttls); i++) {
        bad = claim(0, ttls[i]);
        check_row(hf_relay_acquire(store, &bad, &grant, &err) == HF_INVALID, i);
        bad = claim(1, ttls[i]);
        check_row(hf_relay_renew(store, &bad, &grant, &err) == HF_INVALID, i);
    }
    bad = claim(0, 0);
    assert_int_equal(hf_relay_acquire(store, &bad, &grant, &err), HF_INVALID);
    bad = claim(1, 1000);
    assert_int_equal(hf_relay_acquire(store, &bad, &grant, &err), HF_INVALID);
    bad = claim(0, 1000);
    assert_int_equal(hf_relay_renew(store, &bad, &grant, &err), HF_INVALID);
    bad = claim((uint64_t)INT64_MAX + 1, 1000);
    assert_int_equal(hf_relay_renew(store, &bad, &grant, &err), HF_INVALID);
    assert_int_equal(hf_relay_release(store, &bad, &err), HF_INVALID);
    for (int op = FAKE_ACQUIRE; op <= FAKE_RELEASE; op++)
        assert_int_equal(fake_count(world->fake, (enum fake_op)op), 0);
}

static void a_store_without_detached_leases(void **state)
{
    struct world *world = *state;
    struct hf_claim asked = claim(0, 1000);
    struct hf_grant grant;
    struct hf_error err;

    fake_ops(world->fake)->features = HF_FEATURE_FAIR;
    assert_int_equal(hf_relay_acquire(world->store, &asked, &grant, &err), HF_UNSUPPORTED);
    assert_non_null(strstr(err.text, "detached"));
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

/* As they are, once, and with words: unknown is not no, and nothing is waited out. */
static void answers_pass_through(void **state)
{
    static const enum hf_status answers[] = {
        HF_BUSY,       HF_LOST,   HF_CANCELLED,   HF_UNKNOWN, HF_UNREACHABLE,
        HF_QUARANTINE, HF_DENIED, HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct fake_answer said = {
            .status = answers[i], .loss = HF_LOSS_TAKEN, .retry_after_ms = 9};
        struct hf_claim asked = claim(0, 1000);
        struct hf_grant grant = {0};
        struct hf_error err;

        asked.wait_until_ns = HF_NEVER;
        fake_next(world->fake, FAKE_ACQUIRE, said);
        check_row(hf_relay_acquire(world->store, &asked, &grant, &err) == answers[i], i);
        check_row(err.code == answers[i] && err.retry_after_ms == 9, i);
        asked.token = 3;
        fake_next(world->fake, FAKE_RENEW, said);
        check_row(hf_relay_renew(world->store, &asked, &grant, &err) == answers[i], i);
        check_row(err.code == answers[i] && grant.loss == HF_LOSS_TAKEN, i);
        fake_next(world->fake, FAKE_RELEASE, said);
        check_row(hf_relay_release(world->store, &asked, &err) == answers[i], i);
        check_row(err.code == answers[i] && strstr(err.text, "job") != NULL, i);
        check_row(fake_count(world->fake, FAKE_ACQUIRE) == i + 1, i);
        check_row(fake_count(world->fake, FAKE_RENEW) == i + 1, i);
        check_row(fake_count(world->fake, FAKE_RELEASE) == i + 1, i);
    }
}

/* No client may believe it; and a store never grants more than it was asked for. */
static void grants_that_cannot_be(void **state)
{
    static const struct fake_answer bad[] = {
        {.no_token = true}, {.token = (uint64_t)INT64_MAX + 1}, {.token = UINT64_MAX}};
    struct world *world = *state;
    struct hf_claim asked = claim(0, 1000);
    struct hf_grant grant;
    struct hf_error err;

    for (size_t i = 0; i < COUNT(bad); i++) {
        fake_next(world->fake, FAKE_ACQUIRE, bad[i]);
        check_row(hf_relay_acquire(world->store, &asked, &grant, &err) == HF_CORRUPT, i);
    }
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.ttl_ms = 5000});
    assert_int_equal(hf_relay_acquire(world->store, &asked, &grant, &err), HF_OK);
    assert_int_equal(grant.ttl_ms, 1000);
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.ttl_ms = 500});
    assert_int_equal(hf_relay_acquire(world->store, &asked, &grant, &err), HF_OK);
    assert_int_equal(grant.ttl_ms, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(an_acquire_is_the_callers), with_store(a_renewal_and_a_release_ask_once),
        with_store(what_is_refused),           with_store(a_store_without_detached_leases),
        with_store(answers_pass_through),      with_store(grants_that_cannot_be),
    };

    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
