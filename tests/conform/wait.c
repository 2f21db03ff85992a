/* wait.c - waiting in line, and leaving it. */
#include "conform.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A waiter with a thread and a client of its own. */
struct waiter {
    pthread_t thread;
    struct hf_store_base *store;
    struct hold hold;
    int cancel_fd;
    atomic_int status; /* -1 while it waits */
    atomic_int *turns; /* winners so far; each takes the next number and gives the lock back */
    int turn;
    atomic_int *inside;
    bool overlap;
};

static void *wait_in_line(void *data)
{
    struct waiter *waiter = data;
    enum hf_status status;

    if (waiter->cancel_fd > 0)
        status = take_cancel(waiter->store, &waiter->hold, waiter->cancel_fd);
    else
        status = take(waiter->store, &waiter->hold, LONG_TTL_MS, 6 * SOON_MS);
    if (status == HF_OK && waiter->turns != NULL) {
        waiter->overlap = atomic_fetch_add(waiter->inside, 1) != 0;
        waiter->turn = atomic_fetch_add(waiter->turns, 1);
        atomic_fetch_sub(waiter->inside, 1);
        status = release(waiter->store, &waiter->hold);
    }
    atomic_store(&waiter->status, (int)status);
    return NULL;
}

static void start(struct waiter *waiter, const struct hold *like)
{
    waiter->hold = hold_same(like);
    waiter->store = client_open();
    atomic_store(&waiter->status, -1);
    waiter->turn = -1;
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_line, waiter), 0);
}

static enum hf_status finish(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    return (enum hf_status)atomic_load(&waiter->status);
}

static void a_wait_ends_in_time(void **state)
{
    struct hf_store_base *store = client_open();
    struct hf_store_base *other = client_open();
    struct hold hold = hold_new("timeout");
    struct hold late = hold_same(&hold);
    int64_t start_ns;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start_ns = hf__now_ns();
    assert_int_equal(take(other, &late, LONG_TTL_MS, 300), HF_BUSY);
    assert_true(hf__now_ns() - start_ns >= 300 * HF__NS_PER_MS);
    assert_true(hf__now_ns() - start_ns < SOON_MS * HF__NS_PER_MS);
    assert_non_null(strstr(late.err.text, "host/1/conform"));
    assert_int_equal(waiters_of(store, hold.name), 0); /* nobody is left in the line */
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(take(store, &hold, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(release(store, &hold), HF_OK);
    client_close(store);
    client_close(other);
}

static void a_wait_is_granted_on_release(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("handover");
    struct waiter waiter = {0};
    int64_t in_line_ns;
    int64_t released_ns;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start(&waiter, &hold);
    await_line(store, hold.name, 1);
    in_line_ns = hf__now_ns();
    /* A look that is under way when the lock is released may rightly be what gets it. */
    hf__sleep_ns(500 * HF__NS_PER_MS);
    assert_int_equal(atomic_load(&waiter.status), -1);
    released_ns = hf__now_ns();
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_true(hf__now_ns() - released_ns < SOON_MS * HF__NS_PER_MS);
    assert_true(waiter.hold.grant.token > hold.grant.token);
    /* Its life counts from the request that confirmed it, not from when it began to wait. */
    assert_true(waiter.hold.grant.sent_at_ns >= in_line_ns);
    assert_true(is_held(store, hold.name));
    assert_int_equal(waiters_of(store, hold.name), 0);
    assert_int_equal(renew(waiter.store, &waiter.hold, LONG_TTL_MS), HF_OK);
    assert_int_equal(release(waiter.store, &waiter.hold), HF_OK);
    client_close(waiter.store);
    client_close(store);
}

static void a_wait_is_granted_on_expiry(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("expiry");
    struct waiter waiter = {0};

    (void)state;
    assert_int_equal(take(store, &hold, conform.short_ttl_ms, 0), HF_OK);
    start(&waiter, &hold);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_true(hf__now_ns() >= deadline_of(&hold)); /* as in wait_out */
    assert_int_equal(release(waiter.store, &waiter.hold), HF_OK);
    client_close(waiter.store);
    client_close(store);
}

enum { LINE = 12 };

static void line_up(struct hf_store_base *store, const struct hold *hold, struct waiter *line,
                    atomic_int *turns, atomic_int *inside)
{
    for (int i = 0; i < LINE; i++) {
        line[i].turns = turns;
        line[i].inside = inside;
        start(&line[i], hold);
        await_line(store, hold->name, (uint64_t)i + 1);
    }
}

/* Each in the order it came, one at a time, and the tokens in that order too. */
static void first_come_first_served(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("fifo");
    struct waiter line[LINE] = {0};
    atomic_int turns = 0;
    atomic_int inside = 0;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    line_up(store, &hold, line, &turns, &inside);
    assert_int_equal(release(store, &hold), HF_OK);
    for (int i = 0; i < LINE; i++) {
        check_row(finish(&line[i]) == HF_OK, i);
        check_row(!line[i].overlap, i);
        check_row(!has(HF_FEATURE_FAIR) || line[i].turn == i, i);
        check_row(!has(HF_FEATURE_FAIR) || i == 0 ||
                      line[i].hold.grant.token > line[i - 1].hold.grant.token,
                  i);
        client_close(line[i].store);
    }
    assert_int_equal(turns, LINE);
    client_close(store);
}

/* A claim that does not wait does not get in front of those that do. */
static void a_newcomer_does_not_jump_the_line(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("newcomer");
    struct hold newcomer = hold_same(&hold);
    struct waiter waiter = {0};

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start(&waiter, &hold);
    await_line(store, hold.name, 1);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(take(store, &newcomer, LONG_TTL_MS, 0), HF_BUSY);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_int_equal(release(waiter.store, &waiter.hold), HF_OK);
    client_close(waiter.store);
    client_close(store);
}

static void cancelling_leaves_the_line(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("cancel");
    struct waiter quitter = {0};
    struct waiter stayer = {0};
    int64_t cancelled_ns;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    quitter.cancel_fd = ends[0];
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    start(&quitter, &hold);
    await_line(store, hold.name, 1);
    start(&stayer, &hold);
    await_line(store, hold.name, 2);
    cancelled_ns = hf__now_ns();
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(finish(&quitter), HF_CANCELLED);
    assert_true(hf__now_ns() - cancelled_ns < SOON_MS * HF__NS_PER_MS);
    assert_int_equal(quitter.hold.err.code, HF_CANCELLED);
    await_line(store, hold.name, 1);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(finish(&stayer), HF_OK); /* its turn came though it was second */
    assert_int_equal(release(stayer.store, &stayer.hold), HF_OK);
    /* What was readable before the wait began: not a moment in the line, but a free lock is had. */
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(take_cancel(quitter.store, &quitter.hold, ends[0]), HF_CANCELLED);
    assert_int_equal(release(store, &hold), HF_OK);
    (void)close(ends[0]);
    (void)close(ends[1]);
    client_close(quitter.store);
    client_close(stayer.store);
    client_close(store);
}

/* A renew or release must not have to wait for an acquire that waits, in the same client too. */
static void a_wait_blocks_nobody(void **state)
{
    struct hf_store_base *store = client_open();
    struct hold hold = hold_new("block");
    struct hold elsewhere = hold_new("elsewhere");
    struct waiter waiter = {.hold = hold_same(&hold), .store = store, .status = -1};
    int64_t start_ns;

    (void)state;
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_in_line, &waiter), 0);
    await_line(store, hold.name, 1);
    start_ns = hf__now_ns();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(renew(store, &hold, LONG_TTL_MS), HF_OK);
        assert_int_equal(take(store, &elsewhere, LONG_TTL_MS, 0), HF_OK);
        assert_int_equal(release(store, &elsewhere), HF_OK);
    }
    assert_int_equal(release(store, &hold), HF_OK);
    assert_true(hf__now_ns() - start_ns < SOON_MS * HF__NS_PER_MS);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_int_equal(release(store, &waiter.hold), HF_OK);
    client_close(store);
}

/* A child that opens the store when it is told to, and then waits for the lock (or takes it), says
 * so, and stays until it dies. */
struct child {
    pid_t pid;
    int go_fd;
    int ready_fd;
};

static struct child start_child(const struct hold *like, int64_t wait_ms)
{
    struct child child;
    char answer = 0;
    int ready[2];
    int go[2];

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    child = (struct child){.pid = fork_child(), .go_fd = go[1], .ready_fd = ready[0]};
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        struct hold hold = hold_same(like);
        struct hf_store_base *store = read(go[0], &answer, 1) == 1 ? client_try_open() : NULL;

        if (store == NULL)
            _exit(1);
        answer = take(store, &hold, LONG_TTL_MS, wait_ms) == HF_OK ? 'y' : 'n';
        (void)!write(ready[1], &answer, 1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    return child;
}

static void let_go(const struct child *child)
{
    assert_int_equal(write(child->go_fd, "!", 1), 1);
}

static bool has_it(const struct child *child)
{
    char answer = 0;

    return read(child->ready_fd, &answer, 1) == 1 && answer == 'y';
}

static void end_child(const struct child *child)
{
    assert_int_equal(kill(child->pid, SIGKILL), 0);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
    (void)close(child->go_fd);
    (void)close(child->ready_fd);
}

static void dead_waiters_are_passed_over(void **state)
{
    enum { DEAD = 3 };
    struct hold hold = hold_new("dead waiter");
    struct waiter waiter = {0};
    struct child children[DEAD];
    struct hf_store_base *store;

    (void)state;
    for (int i = 0; i < DEAD; i++)
        children[i] = start_child(&hold, -1);
    store = client_open();
    assert_int_equal(take(store, &hold, LONG_TTL_MS, 0), HF_OK);
    for (int i = 0; i < DEAD; i++) {
        let_go(&children[i]);
        await_line(store, hold.name, (uint64_t)i + 1);
    }
    start(&waiter, &hold);
    await_line(store, hold.name, DEAD + 1);
    for (int i = 0; i < DEAD; i++)
        end_child(&children[i]);
    assert_int_equal(release(store, &hold), HF_OK);
    assert_int_equal(finish(&waiter), HF_OK); /* long before anybody's wait or ttl is over */
    assert_int_equal(release(waiter.store, &waiter.hold), HF_OK);
    client_close(waiter.store);
    client_close(store);
}

/* Killed with the lock in its hands: the next does not have to wait for the ttl. */
static void a_dead_holder_frees_its_lock(void **state)
{
    struct hold hold = hold_new("dead holder");
    struct hold next = hold_same(&hold);
    struct child first = start_child(&hold, 0);
    struct child second = start_child(&hold, 0);
    struct waiter waiter = {0};
    struct hf_store_base *store = client_open();

    (void)state;
    let_go(&first);
    assert_true(has_it(&first));
    assert_int_equal(take(store, &next, LONG_TTL_MS, 0), HF_BUSY);
    start(&waiter, &hold);
    await_line(store, hold.name, 1);
    end_child(&first);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_int_equal(release(waiter.store, &waiter.hold), HF_OK);
    /* And with nobody waiting yet. */
    let_go(&second);
    assert_true(has_it(&second));
    end_child(&second);
    assert_int_equal(take(store, &next, LONG_TTL_MS, SOON_MS), HF_OK);
    assert_int_equal(release(store, &next), HF_OK);
    client_close(waiter.store);
    client_close(store);
}

void add_wait_tests(struct suite *suite)
{
    ADD(suite, a_wait_ends_in_time);
    ADD(suite, a_wait_is_granted_on_release);
    ADD(suite, a_wait_is_granted_on_expiry);
    ADD(suite, first_come_first_served);
    if (has(HF_FEATURE_FAIR))
        ADD(suite, a_newcomer_does_not_jump_the_line);
    ADD(suite, cancelling_leaves_the_line);
    ADD(suite, a_wait_blocks_nobody);
    ADD(suite, dead_waiters_are_passed_over);
    if (has(HF_FEATURE_CRASH_RELEASE))
        ADD(suite, a_dead_holder_frees_its_lock);
}
