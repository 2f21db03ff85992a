/* hold.c - taking, holding and giving back, with one client or two. */
#include "conform.h"

#include <string.h>

static void grants_and_releases(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("grant");
    int64_t before_ns = hf__now_ns();

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_true(hold.grant.token >= 1 && hold.grant.token <= INT64_MAX);
    assert_true(hold.grant.sent_at_ns >= before_ns); /* before the request, but not before us */
    assert_true(hold.grant.sent_at_ns <= hf__now_ns());
    assert_true(hold.grant.ttl_ms <= LONG_TTL_MS);
    assert_true(is_held(store, hold.name));
    assert_int_equal(release(store, &hold), HF_OK);
    assert_false(is_held(store, hold.name));
    assert_int_equal(release(store, &hold), HF_LOST); /* only once */
    client_close(store);
}

/* Two clients in one process exclude each other like any others; and so do two attempts of one. */
static void excludes(void **state)
{
    struct hf_store_base *a = client_open();
    struct hf_store_base *b = client_open();
    struct hold first = hold_new("exclude");
    struct hold second = hold_same(&first);

    (void)state;
    assert_int_equal(take(a, &first, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(take(b, &second, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(take(a, &second, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(release(a, &first), HF_OK);
    assert_int_equal(take(b, &second, LONG_TTL_MS, 0), HF_OK);
    assert_true(second.grant.token > first.grant.token);
    assert_int_equal(take(a, &first, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(release(b, &second), HF_OK);
    client_close(a);
    client_close(b);
}

static void says_who_is_in_the_way(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("who");
    struct hold other = hold_same(&hold);

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(take(store, &other, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(other.err.code, HF_BUSY);
    assert_non_null(strstr(other.err.text, hold.name));
    assert_non_null(strstr(other.err.text, "host/1/conform"));
    assert_null(strstr(other.err.text, hold.owner)); /* never the secret */
    assert_null(strstr(other.err.text, other.owner));
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* Hold after hold, by clients in turn, over several locks: every token is above the last. */
static void tokens_rise(void **state)
{
    enum { LOCKS = 3, HOLDS = 200 };
    struct hf_store_base *clients[2] = {client_open(), client_open()};
    struct hold holds[LOCKS];
    uint64_t last[LOCKS] = {0};

    (void)state;
    for (int i = 0; i < LOCKS; i++)
        holds[i] = hold_new("tokens");
    for (int i = 0; i < HOLDS; i++) {
        struct hold *hold = &holds[i % LOCKS];
        struct hf_store_base *store = clients[i / 2 % 2];

        assert_int_equal(take(store, hold, LONG_TTL_MS, 0), HF_OK);
        check_row(hold->grant.token > last[i % LOCKS], i);
        last[i % LOCKS] = hold->grant.token;
        assert_int_equal(release(store, hold), HF_OK);
    }
    client_close(clients[0]);
    client_close(clients[1]);
}

/* Another client, opened later, goes on where the last one was. */
static void tokens_rise_over_reopening(void **state)
{
    struct hold hold = hold_new("reopen");
    uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct hf_store_base *store = client_open();

        assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
        assert_true(hold.grant.token > last);
        last = hold.grant.token;
        assert_int_equal(release(store, &hold), HF_OK);
        client_close(store);
    }
}

static void compares_the_owner(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("owner");
    struct hold thief;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    thief = hold;
    thief.owner[0] = thief.owner[0] == '0' ? '1' : '0';
    assert_int_equal(renew(store, &thief, LONG_TTL_MS), HF_LOST);
    assert_int_equal(thief.grant.loss, HF_LOSS_TAKEN);
    assert_int_equal(renew(store, &thief, 0), HF_LOST);
    assert_int_equal(release(store, &thief), HF_LOST);
    thief = hold;
    thief.grant.token++; /* whoever adopts a lease must know its token too */
    assert_int_equal(renew(store, &thief, 0), HF_LOST);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK); /* all that did nothing */
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* A hold is an owner with a token: an older token of the same owner is another hold, and over. */
static void an_older_token_is_lost(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("older token");
    struct hold older;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    older = hold;
    older.grant.token--;
    assert_int_equal(renew(store, &older, LONG_TTL_MS), HF_LOST);
    older.grant.token = hold.grant.token - 1;
    assert_int_equal(renew(store, &older, 0), HF_LOST); /* a look */
    older.grant.token = hold.grant.token - 1;
    assert_int_equal(release(store, &older), HF_LOST);
    assert_true(is_held(store, hold.name)); /* nothing happened to the one that is held */
    assert_int_equal(renew(store, &hold, 0), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* One owner, one hold: a request that arrives a second time is not granted a second token. */
static void an_owner_holds_once(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("owner twice");
    struct hf_claim again;
    struct hf_grant grant = {0};
    enum hf_status status;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    again = claim_of(&hold, LONG_TTL_MS);
    again.token = 0;
    status = store->ops->acquire(store, &again, &grant, &hold.err);
    /* Unknown: a server in between cannot tell what became of the first. */
    assert_true(status == HF_BUSY || status == HF_UNKNOWN ||
                (status == HF_OK && grant.token == hold.grant.token));
    assert_int_equal(renew(store, &hold, 0), HF_OK); /* and the hold is none the worse for it */
    assert_int_equal(release(store, &hold), HF_OK);
    assert_false(is_held(store, hold.name));
    client_close(store);
}

/* A client that never heard its token (a lost answer) can still give back what the owner holds. */
static void an_unknown_token_is_released(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("unknown token");

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    hold.grant.token = 0;
    assert_int_equal(release(store, &hold), HF_OK);
    assert_false(is_held(store, hold.name));
    assert_int_equal(release(store, &hold), HF_LOST);
    client_close(store);
}

static void a_detached_hold_survives_its_client(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *later;
    struct hold hold = hold_new("detached");
    struct hold other = hold_same(&hold);

    (void)state;
    assert_int_equal(take_detached(store, &hold, LONG_TTL_MS), HF_OK);
    client_close(store);
    later = client_open();
    assert_int_equal(take(later, &other, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(renew(later, &hold, 0), HF_OK);
    assert_int_equal(renew(later, &hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(later, &hold), HF_OK);
    assert_int_equal(take(later, &other, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(release(later, &other), HF_OK);
    client_close(later);
}

static void closing_frees_what_is_not_detached(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("close");
    struct hold next = hold_same(&hold);

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    client_close(store);
    assert_int_equal(take(other, &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_true(next.grant.token > hold.grant.token);
    assert_int_equal(release(other, &next), HF_OK);
    client_close(other);
}

void add_hold_tests(struct suite *suite)
{
    ADD(suite, grants_and_releases);
    ADD(suite, excludes);
    ADD(suite, says_who_is_in_the_way);
    ADD(suite, tokens_rise);
    ADD(suite, tokens_rise_over_reopening);
    ADD(suite, compares_the_owner);
    ADD(suite, an_older_token_is_lost);
    ADD(suite, an_owner_holds_once);
    ADD(suite, an_unknown_token_is_released);
    if (has(HF_FEATURE_DETACHED))
        ADD(suite, a_detached_hold_survives_its_client);
    if (has(HF_FEATURE_CRASH_RELEASE))
        ADD(suite, closing_frees_what_is_not_detached);
}
