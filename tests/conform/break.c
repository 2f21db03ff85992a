/* break.c - a hold that is broken: it is no longer renewed, and stays until its end. */
#include "break.h"
#include "records.h"

#include <pthread.h>
#include <string.h>

#define REASON "stuck since noon"

enum hf_status break_token(struct hf_store_base *store, const struct hold *hold, uint64_t token,
                           bool now, struct hf_broken *out)
{
    int64_t end_ns = hf__now_ns() + SOON_MS * HF__NS_PER_MS;
    struct hf_revoke revoke = {
        .name = hold->name, .token = token, .by = BREAKER, .reason = REASON, .now = now};
    struct hf_error err;
    enum hf_status status;

    do {
        revoke.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
        memset(out, 0, sizeof *out);
        status = store->ops->revoke(store, &revoke, out, &err);
    } while ((status == HF_UNKNOWN || status == HF_UNREACHABLE) && hf__now_ns() < end_ns);
    if (status != HF_OK && status != HF_LOST)
        print_error("# revoke: %s\n", err.text);
    return status;
}

static enum hf_status break_hold(struct hf_store_base *store, const struct hold *hold)
{
    struct hf_broken broken;

    return break_token(store, hold, hold->grant.token, false, &broken);
}

/* Its holder is told that it was broken, by whom and why; each time. */
static void assert_broken(struct hf_store_base *store, struct hold *hold, uint32_t ttl_ms)
{
    memset(&hold->revocation, 0, sizeof hold->revocation);
    assert_int_equal(renew(store, hold, ttl_ms), HF_LOST);
    assert_int_equal(hold->grant.loss, HF_LOSS_BROKEN);
    assert_string_equal(hold->revocation.by, BREAKER);
    assert_string_equal(hold->revocation.reason, REASON);
    assert_non_null(strstr(hold->err.text, "broken by " BREAKER));
    assert_null(strstr(hold->err.text, hold->owner));
}

static void is_renewed_no_more_and_stays(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break");
    struct hold next = hold_same(&hold);
    struct hf_broken broken;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(break_token(other, &hold, hold.grant.token, false, &broken), HF_OK);
    assert_string_equal(broken.label, "host/1/conform");
    assert_true(broken.remaining_ms != 0 && broken.remaining_ms <= LONG_TTL_MS); /* < 0: unknown */
    assert_false(broken.detached || broken.foreign || broken.again);
    assert_broken(store, &hold, LONG_TTL_MS);
    assert_true(is_held(other, hold.name)); /* it is there until it is released */
    assert_int_equal(take(other, &next, LONG_TTL_MS, 0), HF_BUSY);
    assert_non_null(strstr(next.err.text, "host/1/conform"));
    assert_int_equal(renew(store, &hold, 0), HF_OK);
    assert_int_equal(hold.grant.loss, HF_LOSS_BROKEN);
    assert_broken(store, &hold, LONG_TTL_MS); /* nobody forgets it meanwhile */
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(take(other, &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_true(next.grant.token > hold.grant.token);
    assert_int_equal(renew(other, &next, LONG_TTL_MS), HF_OK); /* it is about that hold alone */
    assert_int_equal(renew(other, &next, 0), HF_OK);
    assert_int_equal(next.grant.loss, HF_LOSS_NONE);
    assert_int_equal(release(other, &next), HF_OK);
    client_close(store);
    client_close(other);
}

/* Frozen, or gone without a trace: its end is where it was, neither sooner nor later. */
static void ends_with_its_time(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break and wait");
    struct hold next = hold_same(&hold);
    int64_t deadline_ns, revoked_ns;

    (void)state;
    assert_int_equal(take(store, &hold, 2 * conform.short_ttl_ms, 0), HF_OK);
    deadline_ns = deadline_of(&hold);
    hf__sleep_ns(conform.short_ttl_ms / 2 * HF__NS_PER_MS);
    assert_int_equal(break_hold(other, &hold), HF_OK);
    revoked_ns = hf__now_ns();
    assert_int_equal(take(other, &next, LONG_TTL_MS, 2 * conform.short_ttl_ms + SOON_MS), HF_OK);
    assert_true(next.grant.sent_at_ns >= deadline_ns);
    assert_true(hf__now_ns() - revoked_ns <
                2 * conform.short_ttl_ms * HF__NS_PER_MS + SOON_MS * HF__NS_PER_MS / 2);
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST);
    assert_int_equal(release(store, &hold), HF_LOST);
    assert_int_equal(renew(other, &next, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(other, &next), HF_OK);
    client_close(store);
    client_close(other);
}

static void only_the_hold_that_is_meant(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break another");
    struct hold next = hold_same(&hold);
    struct hf_broken broken;

    (void)state;
    hold.grant.token = 1;
    assert_int_equal(break_hold(other, &hold), HF_LOST); /* nothing is held */
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (int now = 0; now < 2; now++)
        for (int apart = -1; apart <= 1; apart += 2)
            assert_int_equal(
                break_token(other, &hold, hold.grant.token + (uint64_t)apart, now != 0, &broken),
                HF_LOST);
    assert_int_equal(break_token(other, &hold, 0, true, &broken), HF_LOST); /* it is no foreigner */
    assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(break_hold(other, &hold), HF_LOST); /* it is over */
    assert_int_equal(take(store, &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(break_hold(other, &hold), HF_LOST); /* and another is there */
    assert_int_equal(break_token(other, &hold, hold.grant.token, true, &broken), HF_LOST);
    assert_int_equal(renew(store, &next, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(store, &next), HF_OK);
    client_close(store);
    client_close(other);
}

/* Who broke it first stays on record. */
static void once_is_enough(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break twice");
    struct hf_revoke second = {
        .name = hold.name, .by = "host/3/late", .reason = "", .deadline_ns = HF_NEVER};
    struct hf_broken broken = {.again = false};
    struct hf_error err;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(break_hold(other, &hold), HF_OK);
    second.token = hold.grant.token;
    second.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    assert_int_equal(other->ops->revoke(other, &second, &broken, &err), HF_OK);
    assert_true(broken.again);
    assert_string_equal(broken.label, "host/1/conform");
    assert_broken(store, &hold, LONG_TTL_MS);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
    client_close(other);
}

static bool note_revocation(const struct hf_lock_info *info, void *data)
{
    struct hf_revocation *seen = data;

    if (info->revocation != NULL)
        *seen = *info->revocation;
    return true;
}

static struct hf_revocation listed(struct hf_store_base *store, const char *name)
{
    struct hf_query query = {
        .name = name, .exact = true, .deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS};
    struct hf_revocation seen = {.by = ""};
    struct hf_error err;

    assert_int_equal(store->ops->list(store, &query, note_revocation, &seen, &err), HF_OK);
    return seen;
}

static void a_listing_tells(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("break list");
    struct hf_revocation seen;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_string_equal(listed(store, hold.name).by, "");
    assert_int_equal(break_hold(store, &hold), HF_OK);
    seen = listed(store, hold.name);
    assert_string_equal(seen.by, BREAKER);
    assert_string_equal(seen.reason, REASON);
    assert_true(seen.at_ms > 0);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_string_equal(listed(store, hold.name).by, "");
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
}

/* A waiter with a thread and a client of its own. */
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
    return NULL;
}

static void start(struct waiter *waiter, struct hf_store_base *store, const struct hold *like)
{
    waiter->hold = hold_same(like);
    waiter->store = store;
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_line, waiter), 0);
}

/* The waiter had to wait for the release, holds the lock now, and nothing sticks to its hold. */
static void finish(struct waiter *waiter, const struct hold *before, int64_t not_before_ns)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_int_equal(waiter->status, HF_OK);
    assert_true(waiter->hold.grant.sent_at_ns >= not_before_ns);
    assert_true(waiter->hold.grant.token > before->grant.token);
    assert_int_equal(renew(waiter->store, &waiter->hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(waiter->store, &waiter->hold), HF_OK);
}

static void its_release_passes_it_on(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break queue");
    struct waiter waiter = {0};
    int64_t released_ns;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start(&waiter, other, &hold);
    await_line(store, hold.name, 1);
    assert_int_equal(break_hold(store, &hold), HF_OK);
    hf__sleep_ns(1500 * HF__NS_PER_MS); /* longer than a waiter sleeps between two looks */
    assert_broken(store, &hold, LONG_TTL_MS);
    released_ns = hf__now_ns();
    assert_int_equal(release(store, &hold), HF_OK);
    finish(&waiter, &hold, released_ns);
    client_close(store);
    client_close(other);
}

static void now_ends_it_at_once(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break now");
    struct hold next = hold_same(&hold);
    struct hf_broken broken;

    (void)state;
    for (int revoked = 0; revoked < 2; revoked++) { /* also what is revoked already */
        assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
        if (revoked)
            assert_int_equal(break_hold(other, &hold), HF_OK);
        assert_int_equal(break_token(other, &hold, hold.grant.token, true, &broken), HF_OK);
        assert_int_equal(broken.remaining_ms, 0);
        assert_string_equal(broken.label, "host/1/conform");
        assert_int_equal(take(other, &next, LONG_TTL_MS, SOON_MS), HF_OK);
        assert_true(next.grant.token > hold.grant.token);
        assert_broken(store, &hold, LONG_TTL_MS);
        assert_int_equal(release(store, &hold), HF_LOST);
        assert_int_equal(renew(other, &next, LONG_TTL_MS), HF_OK);
        assert_int_equal(release(other, &next), HF_OK);
    }
    client_close(store);
    client_close(other);
}

/* Each holder hears who broke its hold, even if it asks when the next ones were broken, too. */
static void now_again_and_again_is_told_to_all(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold holds[4];
    struct hf_broken broken;

    (void)state;
    holds[0] = hold_new("break now again");
    for (size_t i = 0; i < COUNT(holds); i++) {
        if (i > 0)
            holds[i] = hold_same(&holds[0]);
        assert_int_equal(take(store, &holds[i], LONG_TTL_MS, SOON_MS), HF_OK);
        assert_int_equal(break_token(other, &holds[i], holds[i].grant.token, true, &broken), HF_OK);
    }
    for (size_t i = 0; i < COUNT(holds); i++)
        assert_broken(store, &holds[i], LONG_TTL_MS);
    client_close(store);
    client_close(other);
}

/* Whoever does not renew hears of it when it gives the lock back. */
static void now_is_told_by_its_release(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break now, release");
    struct hf_broken broken;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(break_token(other, &hold, hold.grant.token, true, &broken), HF_OK);
    assert_int_equal(release(store, &hold), HF_LOST);
    assert_non_null(strstr(hold.err.text, "broken by " BREAKER));
    client_close(store);
    client_close(other);
}

static void now_passes_it_on(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break now, queue");
    struct waiter waiter = {0};
    struct hf_broken broken;
    int64_t revoked_ns;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start(&waiter, other, &hold);
    await_line(store, hold.name, 1);
    revoked_ns = hf__now_ns();
    assert_int_equal(break_token(store, &hold, hold.grant.token, true, &broken), HF_OK);
    finish(&waiter, &hold, 0); /* a look that was under way may rightly be what gets it */
    assert_true(hf__now_ns() - revoked_ns < SOON_MS * HF__NS_PER_MS);
    client_close(store);
    client_close(other);
}

static void a_detached_hold_is_broken(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break detached");
    struct hf_broken broken;

    (void)state;
    assert_int_equal(take_detached(store, &hold, LONG_TTL_MS), HF_OK);
    client_close(store);
    assert_int_equal(break_token(other, &hold, hold.grant.token, false, &broken), HF_OK);
    assert_true(broken.detached);
    assert_true(broken.remaining_ms > 0 && broken.remaining_ms <= LONG_TTL_MS);
    assert_broken(other, &hold, LONG_TTL_MS);
    assert_int_equal(renew(other, &hold, 0), HF_OK); /* so that somebody can adopt and release it */
    assert_true(hold.grant.remaining_ms > 0 && hold.grant.remaining_ms <= LONG_TTL_MS);
    assert_int_equal(release(other, &hold), HF_OK);
    assert_false(is_held(other, hold.name));
    client_close(other);
}

/* Whoever is told to end may still say what became of its work. */
static void a_broken_hold_writes_records(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("break record");
    struct hf_broken broken;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 1, .value = "a"}), HF_OK);
    assert_int_equal(break_hold(other, &hold), HF_OK);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 2, .value = "b"}), HF_OK);
    assert_true(reads(other, hold.name, "k", "b"));
    assert_int_equal(break_token(other, &hold, hold.grant.token, true, &broken), HF_OK);
    assert_int_equal(put_for(store, &hold, "k", (struct put){.number = 3, .value = "c"}), HF_LOST);
    assert_true(reads(other, hold.name, "k", "b"));
    client_close(store);
    client_close(other);
}

void add_break_tests(struct suite *suite)
{
    if (!has(HF_FEATURE_BREAK))
        return;
    suite_add(suite, "a_broken_hold_is_renewed_no_more_and_stays", is_renewed_no_more_and_stays);
    suite_add(suite, "a_broken_hold_ends_with_its_time", ends_with_its_time);
    suite_add(suite, "only_the_hold_that_is_meant_is_broken", only_the_hold_that_is_meant);
    suite_add(suite, "who_broke_it_first_stays_on_record", once_is_enough);
    suite_add(suite, "a_listing_tells_of_a_break", a_listing_tells);
    suite_add(suite, "the_release_of_a_broken_hold_passes_it_on", its_release_passes_it_on);
    suite_add(suite, "a_break_now_ends_it_at_once", now_ends_it_at_once);
    suite_add(suite, "a_break_now_passes_it_on", now_passes_it_on);
    suite_add(suite, "breaks_now_of_several_holds_are_told_to_all",
              now_again_and_again_is_told_to_all);
    suite_add(suite, "a_break_now_is_told_by_the_release", now_is_told_by_its_release);
    add_break_race_tests(suite);
    if (has(HF_FEATURE_DETACHED))
        ADD(suite, a_detached_hold_is_broken);
    if (has(HF_FEATURE_RECORDS))
        ADD(suite, a_broken_hold_writes_records);
}
