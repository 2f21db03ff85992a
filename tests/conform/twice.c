/* twice.c - a claim that reaches the store a second time, by another client: somebody on the way
 * repeated it. One owner has one hold, and nothing that becomes of the second claim ends it. */
#include "conform.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OWNER_WAITS_MS (6 * SOON_MS)

/* The claim of a hold, as a relay makes it. */
struct claimant {
    pthread_t thread;
    struct hf_store_base *store;
    struct hold hold;
    int64_t wait_ms;
    int cancel_fd;
    enum hf_status status;
};

static void draw_owner(struct hold *hold)
{
    unsigned char raw[HF_OWNER_LEN / 2];

    hf__random(raw, sizeof raw);
    hf__hex_encode(hold->owner, raw, sizeof raw);
}

/* With the owner that the hold has. */
static void *claim_it(void *data)
{
    struct claimant *c = data;
    struct hf_claim claim = claim_of(&c->hold, LONG_TTL_MS);

    claim.token = 0;
    claim.detached = has(HF_FEATURE_DETACHED);
    claim.kept = claim.detached ? HF_KEPT_NEVER : HF_KEPT_LATER;
    claim.cancel_fd = c->cancel_fd;
    if (c->wait_ms > 0)
        claim.wait_until_ns = hf__now_ns() + c->wait_ms * HF__NS_PER_MS;
    memset(&c->hold.grant, 0, sizeof c->hold.grant);
    c->status = c->store->ops->acquire(c->store, &claim, &c->hold.grant, &c->hold.err);
    c->hold.ttl_ms = LONG_TTL_MS;
    return NULL;
}

/* Likewise; with ttl_ms 0 it only looks. */
static enum hf_status renew_it(struct claimant *c, uint32_t ttl_ms)
{
    struct hf_claim claim = claim_of(&c->hold, ttl_ms);
    struct hf_grant grant = {0};

    claim.detached = has(HF_FEATURE_DETACHED);
    return c->store->ops->renew(c->store, &claim, &grant, &c->hold.err);
}

static enum hf_status release_it(struct hf_store_base *store, struct claimant *c)
{
    struct hf_claim claim = claim_of(&c->hold, 0);

    claim.detached = has(HF_FEATURE_DETACHED);
    return store->ops->release(store, &claim, &c->hold.err);
}

static struct claimant claimant(const struct hold *hold, int64_t wait_ms)
{
    struct claimant c = {
        .store = client_open(), .hold = *hold, .wait_ms = wait_ms, .cancel_fd = -1};

    if (wait_ms > 0)
        c.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return c;
}

static void done_with(struct claimant *c)
{
    client_close(c->store);
    if (c->cancel_fd >= 0)
        (void)close(c->cancel_fd);
}

/* Whatever the second claim is told, it is no second hold, and the first one stays. */
static void check_the_first(struct claimant *first, const struct claimant *second)
{
    assert_true(second->status != HF_OK || second->hold.grant.token == first->hold.grant.token);
    assert_int_equal(renew(first->store, &first->hold, 0), HF_OK);
    assert_int_equal(renew(first->store, &first->hold, LONG_TTL_MS), HF_OK);
    assert_true(is_held(first->store, first->hold.name));
}

static void of_a_holder(void **state)
{
    struct hold hold = hold_new("twice");
    struct claimant first, second;

    (void)state;
    draw_owner(&hold);
    first = claimant(&hold, 0);
    second = claimant(&hold, 0);
    (void)claim_it(&first);
    assert_int_equal(first.status, HF_OK);
    (void)claim_it(&second);
    check_the_first(&first, &second);
    assert_int_equal(release(first.store, &first.hold), HF_OK);
    assert_false(is_held(first.store, hold.name));
    done_with(&first);
    done_with(&second);
}

/* Until the claim is answered, or stands in line. Whoever goes away before that takes back what may
 * have been granted, and on the near side of what repeats claims that is the owner's hold. */
static bool is_answered(struct claimant *c)
{
    for (int64_t waited_ms = 0; waited_ms < SOON_MS; waited_ms += 200) {
        check_pause_ms(200);
        if (pthread_tryjoin_np(c->thread, NULL) == 0)
            return true;
        if (waiters_of(c->store, c->hold.name) > 0)
            return false;
    }
    return false;
}

/* The second claim waits, and whoever sent it goes away. */
static void of_a_holder_and_it_waits(void **state)
{
    struct hold hold = hold_new("twice, waiting");
    struct claimant first, second;
    bool answered;

    (void)state;
    draw_owner(&hold);
    first = claimant(&hold, 0);
    second = claimant(&hold, OWNER_WAITS_MS);
    (void)claim_it(&first);
    assert_int_equal(first.status, HF_OK);
    assert_int_equal(pthread_create(&second.thread, NULL, claim_it, &second), 0);
    answered = is_answered(&second);
    (void)eventfd_write(second.cancel_fd, 1);
    assert_true(answered || pthread_join(second.thread, NULL) == 0);
    check_the_first(&first, &second);
    assert_int_equal(release(first.store, &first.hold), HF_OK);
    assert_false(is_held(first.store, hold.name));
    done_with(&first);
    done_with(&second);
}

/* Cancelled before it was even asked. */
static void of_a_holder_and_nobody_waits_for_it(void **state)
{
    struct hold hold = hold_new("twice, gone");
    struct claimant first, second;
    bool refused;

    (void)state;
    draw_owner(&hold);
    first = claimant(&hold, 0);
    (void)claim_it(&first);
    assert_int_equal(first.status, HF_OK);
    second = claimant(&hold, 0);
    (void)claim_it(&second);
    /* A claim that is refused as one that was here before is on the near side of what repeats
     * claims: it takes back its own. */
    refused = second.status == HF_UNKNOWN;
    done_with(&second);
    for (int i = 0; i < 10 && !refused; i++) {
        second = claimant(&hold, OWNER_WAITS_MS);
        (void)eventfd_write(second.cancel_fd, 1);
        (void)claim_it(&second);
        check_the_first(&first, &second);
        done_with(&second);
    }
    assert_int_equal(release(first.store, &first.hold), HF_OK);
    done_with(&first);
}

/* Both stand in the queue. One of them gets the lock, and the other goes away. */
static void of_one_who_waits(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold holder = hold_new("twice, in the queue");
    struct hold hold = hold_same(&holder);
    struct claimant claimants[2];
    unsigned granted = 0;

    (void)state;
    draw_owner(&hold);
    assert_int_equal(take(store, &holder, LONG_TTL_MS, 0), HF_OK);
    for (int i = 0; i < 2; i++) {
        claimants[i] = claimant(&hold, OWNER_WAITS_MS);
        assert_int_equal(pthread_create(&claimants[i].thread, NULL, claim_it, &claimants[i]), 0);
        if (i == 0)
            await_line(store, hold.name, 1);
    }
    check_pause_ms(200);
    assert_int_equal(release(store, &holder), HF_OK);
    check_soon(is_held(store, hold.name));
    check_pause_ms(1500); /* whoever was woken has confirmed it by now */
    for (int i = 0; i < 2; i++)
        (void)eventfd_write(claimants[i].cancel_fd, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(claimants[i].thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        if (claimants[i].status == HF_OK) {
            assert_int_equal(renew(store, &claimants[i].hold, 0), HF_OK);
            granted++;
        }
    assert_true(granted >= 1);
    assert_true(granted == 1 || claimants[0].hold.grant.token == claimants[1].hold.grant.token);
    claimants[0].hold.grant.token = 0;
    assert_int_equal(release(store, &claimants[0].hold), HF_OK);
    for (int i = 0; i < 2; i++)
        done_with(&claimants[i]);
    client_close(store);
}

/* It comes after the end of the first hold, which it does not bring back to life. */
static void of_a_hold_that_ended(void **state)
{
    struct hold hold = hold_new("twice, late");
    struct claimant first, second;

    (void)state;
    draw_owner(&hold);
    first = claimant(&hold, 0);
    second = claimant(&hold, 0);
    (void)claim_it(&first);
    assert_int_equal(first.status, HF_OK);
    assert_int_equal(renew_it(&first, 0), HF_OK);
    assert_int_equal(release_it(second.store, &first), HF_OK);
    (void)claim_it(&second);
    if (second.status != HF_OK) { /* an owner that was used before is refused */
        assert_false(is_held(first.store, hold.name));
        goto out;
    }
    assert_true(second.hold.grant.token > first.hold.grant.token);
    assert_int_equal(renew_it(&first, LONG_TTL_MS), HF_LOST);
    assert_int_equal(renew_it(&first, 0), HF_LOST);
    assert_int_equal(release_it(first.store, &first), HF_LOST);
    assert_int_equal(renew_it(&second, LONG_TTL_MS), HF_OK);
    assert_int_equal(release_it(second.store, &second), HF_OK);
out:
    done_with(&first);
    done_with(&second);
}

void add_twice_tests(struct suite *suite)
{
    suite_add(suite, "a_claim_sent_twice_of_a_holder", of_a_holder);
    if (!has(HF_FEATURE_DETACHED))
        return; /* nobody claims on behalf of others there */
    suite_add(suite, "a_claim_sent_twice_of_a_holder_that_waits", of_a_holder_and_it_waits);
    suite_add(suite, "a_claim_sent_twice_that_nobody_waits_for",
              of_a_holder_and_nobody_waits_for_it);
    if (has(HF_FEATURE_FAIR)) /* else an owner is drawn anew for every try */
        suite_add(suite, "a_claim_sent_twice_of_one_who_waits", of_one_who_waits);
    suite_add(suite, "a_claim_sent_twice_of_a_hold_that_ended", of_a_hold_that_ended);
}
