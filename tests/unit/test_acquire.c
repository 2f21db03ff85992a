/* test_acquire.c - a wait outlives whatever may pass before it is over.
 * run: threads */
#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct world {
    struct fake_store *fake;
    struct hf_store *store;
    unsigned troubles;
    enum hf_status last_trouble;
};

static int set_up(void **state)
{
    static struct world world;

    world = (struct world){.fake = fake_new(HF_FEATURE_DETACHED)};
    world.store = fake_open(world.fake);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    fake_free(world->fake);
    return 0;
}

static void hear(const struct hf_error *why, void *data)
{
    struct world *world = data;

    world->troubles++;
    world->last_trouble = why->code;
    assert_non_null(strstr(why->text, "job"));
}

static struct hf_acquire_options waiting(struct world *world, int64_t wait_ms)
{
    return (struct hf_acquire_options){.size = sizeof(struct hf_acquire_options),
                                       .ttl_ms = 10000,
                                       .wait_ms = wait_ms,
                                       .no_keeper = true,
                                       .on_trouble = hear,
                                       .data = world};
}

static void answer(struct world *world, enum hf_status status)
{
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = status});
}

static void what_passes_is_outlived(void **state)
{
    static const enum hf_status faults[] = {HF_UNREACHABLE, HF_UNKNOWN, HF_QUARANTINE,
                                            HF_UNREACHABLE};
    static const int64_t waits_ms[] = {60000, -1};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(waits_ms); i++) {
        struct hf_acquire_options options = waiting(world, waits_ms[i]);
        struct hf_lease *lease;
        struct hf_error err = {.code = HF_NOMEM, .text = "old"};

        for (size_t j = 0; j < COUNT(faults); j++)
            answer(world, faults[j]);
        check_row(hf_acquire(world->store, "job", &options, &lease, &err) == HF_OK, i);
        check_row(err.code == HF_OK && err.text[0] == '\0', i);
        check_row(fake_count(world->fake, FAKE_ACQUIRE) == (i + 1) * (COUNT(faults) + 1), i);
        check_row(world->troubles == (i + 1) * COUNT(faults), i);
        check_row(world->last_trouble == HF_UNREACHABLE, i);
        check_row(hf_release(lease, NULL) == HF_OK, i);
    }
}

/* Each attempt has its own owner and its own time for a request, and all have one end. */
static void every_attempt_is_a_fresh_one(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, 60000);
    struct hf_lease *lease;

    answer(world, HF_UNREACHABLE);
    answer(world, HF_UNREACHABLE);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    for (size_t i = 1; i < 3; i++) {
        struct fake_call a = fake_call(world->fake, FAKE_ACQUIRE, i - 1);
        struct fake_call b = fake_call(world->fake, FAKE_ACQUIRE, i);

        assert_string_not_equal(a.owner, b.owner);
        assert_true(b.deadline_ns > a.deadline_ns);
        assert_int_equal(b.wait_until_ns, a.wait_until_ns);
        assert_true(b.at_ns - a.at_ns >= 50 * HF__NS_PER_MS);
    }
    assert_string_equal(hf_lease_owner(lease), fake_call(world->fake, FAKE_ACQUIRE, 2).owner);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 0);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void what_may_have_been_taken_is_taken_back(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, 60000);
    struct hf_lease *lease;
    struct fake_call back;

    answer(world, HF_UNKNOWN);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    back = fake_call(world->fake, FAKE_RELEASE, 0);
    assert_string_equal(back.owner, fake_call(world->fake, FAKE_ACQUIRE, 0).owner);
    assert_int_equal(back.token, 0);
    assert_true(back.at_ns <= fake_call(world->fake, FAKE_ACQUIRE, 1).at_ns);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* A grant that came too late for its deadline is given back, and the wait goes on. */
static void a_late_grant_does_not_end_the_wait(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, 60000);
    struct hf_lease *lease;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.sent_ms_ago = 9990});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_token(lease), 2);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    assert_true(hf_lease_remaining_ms(lease) > 5000);
    assert_true(fake_count(world->fake, FAKE_RELEASE) >= 1);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void what_does_not_pass_ends_the_wait(void **state)
{
    static const enum hf_status answers[] = {HF_BUSY,        HF_CANCELLED, HF_DENIED, HF_INVALID,
                                             HF_UNSUPPORTED, HF_CORRUPT,   HF_NOMEM};
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, -1);

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct hf_lease *lease;
        struct hf_error err;

        answer(world, HF_UNREACHABLE);
        answer(world, answers[i]);
        check_row(hf_acquire(world->store, "job", &options, &lease, &err) == answers[i], i);
        check_row(lease == NULL && err.code == answers[i], i);
        check_row(fake_count(world->fake, FAKE_ACQUIRE) == 2 * (i + 1), i);
    }
}

/* The last answer is the answer, and the caller waited for it as long as it wanted to. */
static void the_end_of_the_wait(void **state)
{
    static const enum hf_status answers[] = {HF_UNREACHABLE, HF_UNKNOWN, HF_QUARANTINE};
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, 300);
    size_t asked;
    struct hf_lease *lease;

    for (size_t i = 0; i < COUNT(answers); i++) {
        int64_t before_ns = hf__now_ns();
        struct hf_error err;

        fake_always(
            world->fake, FAKE_ACQUIRE,
            (struct fake_answer){.status = answers[i],
                                 .retry_after_ms = answers[i] == HF_QUARANTINE ? 60000 : 0});
        check_row(hf_acquire(world->store, "job", &options, &lease, &err) == answers[i], i);
        check_row(err.code == answers[i] && strstr(err.text, "job") != NULL, i);
        check_row(err.retry_after_ms == (answers[i] == HF_QUARANTINE ? 60000 : 0), i);
        check_row(hf__now_ns() - before_ns >= 300 * HF__NS_PER_MS, i);
    }
    options.wait_ms = 0;
    asked = fake_count(world->fake, FAKE_ACQUIRE);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_QUARANTINE);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), asked + 1);
}

struct poke {
    struct world *world;
    int fd;
};

/* Once the store has been asked, whoever waits is in its pause. */
static void *cancel_later(void *data)
{
    struct poke *poke = data;

    while (fake_count(poke->world->fake, FAKE_ACQUIRE) == 0)
        check_pause_ms(1);
    check_pause_ms(20);
    assert_int_equal(write(poke->fd, "x", 1), 1);
    return NULL;
}

static void the_pause_can_be_cancelled(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, -1);
    struct hf_lease *lease;
    struct hf_error err;
    struct poke poke = {.world = world};
    pthread_t thread;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    options.cancel_fd = ends[0];
    poke.fd = ends[1];
    fake_always(world->fake, FAKE_ACQUIRE,
                (struct fake_answer){.status = HF_QUARANTINE, .retry_after_ms = INT64_MAX});
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &poke), 0);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_CANCELLED);
    assert_int_equal(err.code, HF_CANCELLED);
    assert_null(lease);
    pthread_join(thread, NULL);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A keeper's lease, through the same trouble: it is kept, and its place in the heap is one. */
static void a_kept_lease_comes_out_of_it_whole(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = waiting(world, -1);
    struct hf_lease *lease;

    options.no_keeper = false;
    options.ttl_ms = 300;
    answer(world, HF_UNKNOWN);
    answer(world, HF_UNREACHABLE);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    for (int i = 0; i < 5000 && fake_count(world->fake, FAKE_RENEW) == 0; i++)
        check_pause_ms(1);
    assert_string_equal(fake_call(world->fake, FAKE_RENEW, 0).owner, hf_lease_owner(lease));
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(what_passes_is_outlived),
        with_store(every_attempt_is_a_fresh_one),
        with_store(what_may_have_been_taken_is_taken_back),
        with_store(a_late_grant_does_not_end_the_wait),
        with_store(what_does_not_pass_ends_the_wait),
        with_store(the_end_of_the_wait),
        with_store(the_pause_can_be_cancelled),
        with_store(a_kept_lease_comes_out_of_it_whole),
    };

    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
