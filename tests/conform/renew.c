/* renew.c - a hold that is renewed, looked at, or left to expire. */
#include "conform.h"

#include <string.h>

static void renews_what_is_held(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("renew");
    struct hold other = hold_same(&hold);
    uint64_t token;
    int64_t until_ns;

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    token = hold.grant.token;
    until_ns = hf__now_ns() + 3 * (int64_t)conform.short_ttl_ms * HF__NS_PER_MS;
    while (hf__now_ns() < until_ns) { /* three lives long */
        int64_t deadline_ns = deadline_of(&hold);
        int64_t before_ns = hf__now_ns();
        enum hf_status status = renew(store, &hold, conform.short_ttl_ms);

        if (status == HF_LOST && hf__now_ns() > deadline_ns) { /* the machine is too busy */
            assert_int_equal(take(store, &hold, conform.short_ttl_ms, SOON_MS), HF_OK);
            token = hold.grant.token;
            continue;
        }
        assert_int_equal(status, HF_OK);
        assert_true(hold.grant.sent_at_ns >= before_ns && hold.grant.sent_at_ns <= hf__now_ns());
        assert_int_equal(take(store, &other, LONG_TTL_MS, 0), HF_BUSY);
        check_pause_ms(conform.short_ttl_ms / 10);
    }
    assert_true(hold.grant.token == token);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

static void wait_out(struct hf_store_base *store, struct hold *hold)
{
    struct hold next = hold_same(hold);

    /* Whoever gets the lock in spite of the ttl shows that the ttl is over. */
    assert_int_equal(take(store, &next, LONG_TTL_MS, conform.short_ttl_ms + SOON_MS), HF_OK);
    /* Not by when it was sent: the store may have looked at it much later than that. */
    assert_true(hf__now_ns() >= deadline_of(hold));
    assert_true(next.grant.token > hold->grant.token);
    assert_int_equal(release(store, &next), HF_OK);
}

/* Nobody renews it: it is free when its ttl is over, not sooner, and whoever had it is told. */
static void expires(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("expire");

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    wait_out(store, &hold);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST);
    assert_true(hold.grant.loss != HF_LOSS_NONE);
    assert_false(is_held(store, hold.name)); /* never created again */
    assert_int_equal(release(store, &hold), HF_LOST);
    client_close(store);
}

static void renewal_never_creates(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("create");
    struct hold next = hold_same(&hold);

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST); /* after its release */
    assert_false(is_held(other, hold.name));
    assert_int_equal(take(other, &next, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST); /* after another took it */
    assert_int_equal(hold.grant.loss, HF_LOSS_TAKEN);
    assert_int_equal(renew(other, &next, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(other, &next), HF_OK);
    next = hold_new("never taken");
    memcpy(next.owner, hold.owner, sizeof next.owner);
    next.grant.token = hold.grant.token;
    assert_int_equal(renew(store, &next, LONG_TTL_MS), HF_LOST); /* what was never there */
    assert_int_equal(release(store, &next), HF_LOST);
    assert_false(is_held(store, next.name));
    client_close(store);
    client_close(other);
}

/* A look that finds no answer, on a machine that stands still for a moment, is tried again. */
static enum hf_status look_until_answered(struct hf_store_base *store, struct hold *hold,
                                          int64_t until_ns)
{
    enum hf_status status;

    do
        status = renew(store, hold, 0);
    while ((status == HF_UNREACHABLE || status == HF_UNKNOWN) && hf__now_ns() < until_ns);
    return status;
}

static void a_look_extends_nothing(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("look");
    int64_t last_ms = INT64_MAX;
    int64_t deadline_ns;
    int64_t until_ns;
    int64_t end_ns;
    int looks = 0;

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    deadline_ns = deadline_of(&hold);
    until_ns = deadline_ns + SOON_MS * HF__NS_PER_MS;
    end_ns = hf__now_ns() + hold.ttl_ms * HF__NS_PER_MS; /* it was granted before the answer came */
    while (look_until_answered(store, &hold, until_ns) == HF_OK) {
        assert_true(hold.grant.remaining_ms <= (int64_t)conform.short_ttl_ms);
        /* A server in between counts what it took to ask, which is not always the same. */
        assert_true(hold.grant.remaining_ms <= last_ms ||
                    hold.grant.sent_at_ns + hold.grant.remaining_ms * HF__NS_PER_MS <= end_ns);
        assert_true(hold.grant.remaining_ms >= 0);
        assert_true(hold.grant.ttl_ms > 0 && hold.grant.ttl_ms <= conform.short_ttl_ms);
        last_ms = hold.grant.remaining_ms;
        looks++;
        assert_true(hf__now_ns() < until_ns);
        check_pause_ms(20);
    }
    /* None at all only if the machine stood still for the whole ttl. */
    assert_true(looks > 0 || hf__now_ns() >= deadline_ns);
    assert_int_equal(hold.err.code, HF_LOST);
    client_close(store);
}

static void the_ttl_can_change(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("ttl");
    struct hold other = hold_same(&hold);

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
    check_pause_ms(2 * conform.short_ttl_ms);
    assert_int_equal(take(store, &other, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(renew(store, &hold, 0), HF_OK);
    assert_true(hold.grant.remaining_ms > (int64_t)conform.short_ttl_ms);
    assert_int_equal(renew(store, &hold, conform.short_ttl_ms), HF_OK);
    wait_out(store, &hold); /* and not after the long one */
    client_close(store);
}

static void the_ttl_cannot_change(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("ttl");

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS / 2), HF_UNSUPPORTED);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

void add_renew_tests(struct suite *suite)
{
    ADD(suite, renews_what_is_held);
    ADD(suite, expires);
    ADD(suite, renewal_never_creates);
    ADD(suite, a_look_extends_nothing);
    if (has(HF_FEATURE_RENEW_TTL))
        ADD(suite, the_ttl_can_change);
    else
        ADD(suite, the_ttl_cannot_change);
}
