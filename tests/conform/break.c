/* break.c - a hold that is broken: it is renewed no more, and stays until its end. */
#include "records.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BREAKER "host/2/breaker"
#define REASON  "stuck since noon"
#define RACES   1000

/* Breaks the hold with that token; what is not answered is asked again, which does no harm. */
static enum hf_status break_token(struct hf_store_base *store, const struct hold *hold,
                                  uint64_t token, bool now, struct hf_broken *out)
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
        assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST);
        assert_int_equal(take(other, &next, LONG_TTL_MS, SOON_MS), HF_OK);
        assert_true(next.grant.token > hold.grant.token);
        assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_LOST);
        assert_true(hold.grant.loss == HF_LOSS_BROKEN || hold.grant.loss == HF_LOSS_TAKEN);
        assert_int_equal(release(store, &hold), HF_LOST);
        assert_int_equal(renew(other, &next, LONG_TTL_MS), HF_OK);
        assert_int_equal(release(other, &next), HF_OK);
    }
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
    finish(&waiter, &hold, revoked_ns);
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

/* A process that waits in line once go_fd can be read, takes the lock, and tells whether it could
 * renew it. */
static pid_t fork_waiter(const struct hold *like, int go_fd)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        struct hf_store_base *store = client_try_open();
        struct hold hold = hold_same(like);
        char go;

        _exit(store == NULL || read(go_fd, &go, 1) != 1 ||
              take(store, &hold, LONG_TTL_MS, 6 * SOON_MS) != HF_OK ||
              renew(store, &hold, LONG_TTL_MS) != HF_OK || release(store, &hold) != HF_OK);
    }
    return pid;
}

/* The lock was released to a waiter that does not run just now: it is nobody's to break. */
static void a_hand_over_is_not_broken(void **state)
{
    struct hold hold = hold_new("break hand-over");
    struct hf_store_base *store;
    struct hf_broken broken;
    pid_t waiter;
    int status, go[2];

    (void)state;
    assert_int_equal(pipe(go), 0);
    waiter = fork_waiter(&hold, go[0]);
    assert_true(waiter > 0);
    store = client_open();
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(write(go[1], "g", 1), 1);
    await_line(store, hold.name, 1);
    assert_int_equal(kill(waiter, SIGSTOP), 0);
    assert_int_equal(release(store, &hold), HF_OK);
    for (int now = 0; now < 2; now++) {
        assert_int_equal(break_token(store, &hold, hold.grant.token, now != 0, &broken), HF_LOST);
        assert_int_equal(break_token(store, &hold, 0, true, &broken), HF_LOST);
    }
    assert_int_equal(kill(waiter, SIGCONT), 0);
    assert_int_equal(waitpid(waiter, &status, 0), waiter);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    client_close(store);
}

struct breaker {
    struct hf_store_base *store;
    const struct hold *hold;
    pthread_barrier_t *go;
    bool now;
    enum hf_status status;
};

static void *break_it(void *data)
{
    struct breaker *breaker = data;
    struct hf_broken broken;

    (void)pthread_barrier_wait(breaker->go);
    breaker->status = break_token(breaker->store, breaker->hold, breaker->hold->grant.token,
                                  breaker->now, &broken);
    return NULL;
}

/* One holder gives the lock back while a break of its hold is on its way, and the next takes it:
 * whatever comes first, the next hold is none of the breaker's business. */
static void race(struct hf_store_base *const stores[3], const struct hold *like, int round)
{
    struct hold hold = hold_same(like);
    struct hold next = hold_same(like);
    pthread_barrier_t go;
    struct breaker breaker = {.store = stores[2], .hold = &hold, .go = &go, .now = round % 4 == 3};
    enum hf_status released;
    pthread_t thread;

    assert_int_equal(pthread_barrier_init(&go, NULL, 2), 0);
    assert_int_equal(take(stores[0], &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, break_it, &breaker), 0);
    (void)pthread_barrier_wait(&go);
    for (int i = 0; i < round % 7; i++)
        (void)sched_yield();
    released = release(stores[0], &hold);
    assert_int_equal(take(stores[1], &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(breaker.status == HF_OK || breaker.status == HF_LOST);
    /* Only a break at once takes it out of its holder's hands. */
    assert_int_equal(released, breaker.now && breaker.status == HF_OK ? HF_LOST : HF_OK);
    assert_int_equal(renew(stores[1], &next, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(stores[1], &next), HF_OK);
    (void)pthread_barrier_destroy(&go);
}

static void what_changes_hands_is_not_broken(void **state)
{
    struct hf_store_base *stores[] = {client_open(), client_open(), client_open()};
    struct hold hold = hold_new("break race");

    (void)state;
    for (int round = 0; round < RACES; round++)
        race(stores, &hold, round);
    for (size_t i = 0; i < COUNT(stores); i++)
        client_close(stores[i]);
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
    ADD(suite, a_hand_over_is_not_broken);
    ADD(suite, what_changes_hands_is_not_broken);
    if (has(HF_FEATURE_DETACHED))
        ADD(suite, a_detached_hold_is_broken);
    if (has(HF_FEATURE_RECORDS))
        ADD(suite, a_broken_hold_writes_records);
}
