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

        if (status == HF_LOST && hf__now_ns() > deadline_ns) { /* so busy is the machine */
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
    assert_true(next.grant.sent_at_ns >= deadline_of(hold));
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
    int looks = 0;

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    deadline_ns = deadline_of(&hold);
    until_ns = deadline_ns + SOON_MS * HF__NS_PER_MS;
    while (look_until_answered(store, &hold, until_ns) == HF_OK) {
        assert_true(hold.grant.remaining_ms <= (int64_t)conform.short_ttl_ms);
        assert_true(hold.grant.remaining_ms <= last_ms);
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

/* Names that somebody's parser, path or key might stumble over. All are held at once, so that two
 * which the store takes for the same would be noticed. */
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
    assert_true(status == HF_BUSY || (status == HF_OK && grant.token == hold.grant.token));
    assert_int_equal(renew(store, &hold, 0), HF_OK); /* and the hold is none the worse for it */
    assert_int_equal(release(store, &hold), HF_OK);
    assert_false(is_held(store, hold.name));
    client_close(store);
}

/* Who never heard the token (a lost answer) can still give back what the owner holds. */
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

static void odd_names(void **state)
{
    static const char *const odd[] = {" in front",
                                      "in the end ",
                                      "a b",
                                      "A B",
                                      "gr\xc3\xbc\xc3\x9f",
                                      "\xe2\x9c\x93\xf0\x9f\x94\x92",
                                      "/abs//x/../y",
                                      "../../etc/passwd",
                                      "a/b",
                                      "a%2Fb",
                                      "%41",
                                      "A",
                                      "a",
                                      "%",
                                      "100%",
                                      "%s%n%d",
                                      "{tag}rest",
                                      "{",
                                      "a{b",
                                      "-dash",
                                      "--",
                                      ".",
                                      "..",
                                      "'",
                                      "\"",
                                      "\\",
                                      "*?[a-z]",
                                      "a:b",
                                      "a;b",
                                      "a,b",
                                      "a=b",
                                      "#",
                                      "\xff\xfe raw bytes",
                                      "$(x) `y`",
                                      "<&>"};
    struct hf_store_base *store = client_open();
    struct hold holds[COUNT(odd) + 1];
    char salt[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(salt, "");
    for (size_t i = 0; i < COUNT(holds); i++) {
        memset(&holds[i], 0, sizeof holds[i]);
        if (i < COUNT(odd)) {
            (void)snprintf(holds[i].name, sizeof holds[i].name, i % 2 ? "%s%s" : "%2$s%1$s", odd[i],
                           salt + 1);
        } else { /* the longest there is */
            memset(holds[i].name, 'x', HF_NAME_MAX);
            memcpy(holds[i].name, salt + 1, strlen(salt + 1));
        }
        check_row(take(store, &holds[i], LONG_TTL_MS, 0) == HF_OK, i);
    }
    for (size_t i = 0; i < COUNT(holds); i++) {
        struct hold other = hold_same(&holds[i]);

        check_row(take(store, &other, LONG_TTL_MS, 0) == HF_BUSY, i);
        check_row(is_held(store, holds[i].name), i);
        check_row(release(store, &holds[i]) == HF_OK, i);
        check_row(!is_held(store, holds[i].name), i);
    }
    client_close(store);
}

struct listing {
    struct hold *holds;
    size_t count;
    unsigned seen[64];
    unsigned strangers;
    unsigned calls;
    unsigned stop_after;
};

static bool tick_off(const struct hf_lock_info *info, void *data)
{
    struct listing *listing = data;

    listing->calls++;
    for (size_t i = 0; i < listing->count; i++)
        if (strcmp(info->name, listing->holds[i].name) == 0) {
            bool good = info->held && info->token == listing->holds[i].grant.token &&
                        strcmp(info->label, "host/1/conform") == 0 && info->remaining_ms > 0 &&
                        info->remaining_ms <= LONG_TTL_MS && info->age_ms < LONG_TTL_MS &&
                        !info->foreign && info->waiters == 0 && info->size >= sizeof *info;

            listing->seen[i] += good ? 1 : 100;
            return listing->calls != listing->stop_after;
        }
    listing->strangers++;
    return listing->calls != listing->stop_after;
}

static enum hf_status list(struct hf_store_base *store, const char *name, bool exact,
                           struct listing *listing)
{
    struct hf_query query = {
        .name = name, .exact = exact, .deadline_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS};
    struct hf_error err;

    listing->calls = 0;
    listing->strangers = 0;
    memset(listing->seen, 0, sizeof listing->seen);
    return store->ops->list(store, &query, tick_off, listing, &err);
}

static void lists_what_is_held(void **state)
{
    enum { LOCKS = 40 };
    struct hf_store_base *store = client_open();
    struct hold holds[LOCKS];
    struct listing listing = {.holds = holds, .count = LOCKS};
    char prefix[HF_NAME_MAX + 1];

    (void)state;
    fresh_name(prefix, "list");
    for (int i = 0; i < LOCKS; i++) {
        memset(&holds[i], 0, sizeof holds[i]);
        (void)snprintf(holds[i].name, sizeof holds[i].name, "%.100s/%c/%d", prefix,
                       i < LOCKS / 2 ? 'a' : 'b', i);
        assert_int_equal(take(store, &holds[i], LONG_TTL_MS, 0), HF_OK);
    }
    assert_int_equal(list(store, prefix, false, &listing), HF_OK);
    for (int i = 0; i < LOCKS; i++)
        check_row(listing.seen[i] == 1, i);
    assert_int_equal(listing.strangers, 0);
    /* Every lock of the store, of which ours are a part. */
    assert_int_equal(list(store, "", false, &listing), HF_OK);
    for (int i = 0; i < LOCKS; i++)
        check_row(listing.seen[i] == 1, i);
    (void)snprintf(prefix + strlen(prefix), 4, "/b");
    assert_int_equal(list(store, prefix, false, &listing), HF_OK);
    assert_int_equal(listing.calls, LOCKS / 2);
    assert_int_equal(listing.seen[LOCKS - 1], 1);
    /* Exactly one, though its name is the beginning of others'. */
    assert_int_equal(list(store, holds[3].name, true, &listing), HF_OK);
    assert_int_equal(listing.calls, 1);
    assert_int_equal(listing.seen[3], 1);
    listing.stop_after = 5;
    assert_int_equal(list(store, "", false, &listing), HF_OK);
    assert_int_equal(listing.calls, 5);
    listing.stop_after = 0;
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(release(store, &holds[i]), HF_OK);
    assert_int_equal(list(store, prefix, false, &listing), HF_OK);
    assert_int_equal(listing.calls, 0);
    client_close(store);
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
    ADD(suite, renews_what_is_held);
    ADD(suite, expires);
    ADD(suite, renewal_never_creates);
    ADD(suite, a_look_extends_nothing);
    if (has(HF_FEATURE_RENEW_TTL))
        ADD(suite, the_ttl_can_change);
    else
        ADD(suite, the_ttl_cannot_change);
    if (has(HF_FEATURE_DETACHED))
        ADD(suite, a_detached_hold_survives_its_client);
    if (has(HF_FEATURE_CRASH_RELEASE))
        ADD(suite, closing_frees_what_is_not_detached);
    ADD(suite, odd_names);
    ADD(suite, lists_what_is_held);
}
