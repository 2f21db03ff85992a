/* test_client_acquire.c - what libholdfast asks of a store to take a lock, and what it makes of the
 * answers.
 * run: threads */
#include "client.h"

#include <string.h>
#include <unistd.h>

static void what_the_defaults_ask_for(void **state)
{
    struct world *world = *state;
    int64_t before = hf__now_ns();
    struct hf_lease *lease = take(world, NULL);
    struct fake_call call = fake_call(world->fake, FAKE_ACQUIRE, 0);
    char host[64] = "";
    char prefix[128];

    assert_string_equal(call.name, "job");
    assert_int_equal(call.ttl_ms, HF_TTL_DEFAULT_MS);
    assert_int_equal(call.wait_until_ns, 0);
    assert_int_equal(call.cancel_fd, -1);
    assert_false(call.detached);
    assert_int_equal(call.kept, HF_KEPT_NOW);
    assert_true(call.deadline_ns > before && call.deadline_ns < before + 60 * HF__NS_PER_S);
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(prefix, sizeof prefix, "%s/%ld/", host, (long)getpid());
    assert_int_equal(strncmp(call.label, prefix, strlen(prefix)), 0);

    assert_int_equal(hf_lease_token(lease), 1);
    assert_string_equal(hf_lease_name(lease), "job");
    assert_string_equal(hf_lease_owner(lease), call.owner);
    assert_int_equal(hf_lease_ttl_ms(lease), HF_TTL_DEFAULT_MS);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    assert_true(hf_lease_remaining_ms(lease) > 20000);
    assert_true(hf_lease_remaining_ms(lease) <= 30000 - 302);
    give(lease);
    call = fake_call(world->fake, FAKE_RELEASE, 0);
    assert_string_equal(call.owner, fake_call(world->fake, FAKE_ACQUIRE, 0).owner);
    assert_int_equal(call.token, 1);
}

static void a_fresh_owner_for_every_attempt(void **state)
{
    enum { ATTEMPTS = 50 };
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(1000);

    for (size_t i = 0; i < ATTEMPTS; i++) {
        struct hf_lease *lease;

        if (i % 2 == 0)
            fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
        else
            fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_OK});
        if (hf_acquire(world->store, "job", &options, &lease, NULL) == HF_OK)
            give(lease);
    }
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), ATTEMPTS);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        struct fake_call a = fake_call(world->fake, FAKE_ACQUIRE, i);

        assert_int_equal(strlen(a.owner), HF_OWNER_LEN);
        assert_int_equal(strspn(a.owner, "0123456789abcdef"), HF_OWNER_LEN);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(a.owner, fake_call(world->fake, FAKE_ACQUIRE, j).owner);
    }
}

static void options_reach_the_store(void **state)
{
    struct world *world = *state;
    int64_t before = hf__now_ns();
    int ends[2];
    struct fake_call call;
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = 1234,
                                         .wait_ms = 5000,
                                         .label = "cron\n/1/x",
                                         .detached = true};

    assert_int_equal(pipe(ends), 0);
    options.cancel_fd = ends[0];
    give(take(world, &options));
    call = fake_call(world->fake, FAKE_ACQUIRE, 0);
    assert_int_equal(call.ttl_ms, 1234);
    assert_true(call.wait_until_ns >= before + 5 * HF__NS_PER_S);
    assert_true(call.wait_until_ns <= hf__now_ns() + 5 * HF__NS_PER_S);
    assert_string_equal(call.label, "cron?/1/x");
    assert_int_equal(call.cancel_fd, ends[0]);
    assert_true(call.detached);
    options.wait_ms = -1;
    give(take(world, &options));
    assert_true(fake_call(world->fake, FAKE_ACQUIRE, 1).wait_until_ns == HF_NEVER);
    options.wait_ms = INT64_MAX;
    options.cancel_fd = -1;
    give(take(world, &options));
    assert_true(fake_call(world->fake, FAKE_ACQUIRE, 2).wait_until_ns == HF_NEVER);
    assert_int_equal(fake_call(world->fake, FAKE_ACQUIRE, 2).cancel_fd, -1);
    options.wait_ms = INT64_MAX / HF__NS_PER_MS;
    give(take(world, &options));
    assert_true(fake_call(world->fake, FAKE_ACQUIRE, 3).wait_until_ns > before);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A program built when there were fewer options: what lies behind its struct is not read. */
static void an_older_caller_knows_fewer_options(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options;
    struct { /* a newer caller knows more than we do */
        struct hf_acquire_options known;
        char more[64];
    } newer = {.known = {.size = sizeof newer, .ttl_ms = 3000}};
    struct fake_call call;

    memset(&options, 0xff, sizeof options);
    options.size = offsetof(struct hf_acquire_options, wait_ms);
    options.ttl_ms = 2000;
    give(take(world, &options));
    call = fake_call(world->fake, FAKE_ACQUIRE, 0);
    assert_int_equal(call.ttl_ms, 2000);
    assert_int_equal(call.wait_until_ns, 0);
    assert_int_equal(call.cancel_fd, -1);
    assert_false(call.detached);
    give(take(world, &newer.known));
    assert_int_equal(fake_call(world->fake, FAKE_ACQUIRE, 1).ttl_ms, 3000);
}

static void callers_mistakes(void **state)
{
    struct world *world = *state;
    char longest[HF_NAME_MAX + 2];
    const char *const names[] = {NULL, "", "a\nb", "\x7f", longest};
    static const uint32_t ttls[] = {1, HF_TTL_MIN_MS - 1, HF_TTL_MAX_MS + 1, UINT32_MAX};
    struct hf_acquire_options no_size = {.ttl_ms = 1000};
    struct hf_lease *lease;
    struct hf_error err;

    memset(longest, 'x', sizeof longest);
    longest[HF_NAME_MAX + 1] = '\0';
    for (size_t i = 0; i < COUNT(names); i++) {
        lease = (struct hf_lease *)world;
        check_row(hf_acquire(world->store, names[i], NULL, &lease, &err) == HF_INVALID, i);
        check_row(lease == NULL && err.code == HF_INVALID && err.text[0] != '\0', i);
        check_row(hf_acquire(world->store, names[i], NULL, &lease, NULL) == HF_INVALID, i);
        check_row(hf_inspect(world->store, names[i], NULL, NULL, &err) == HF_INVALID, i);
    }
    for (size_t i = 0; i < COUNT(ttls); i++) {
        struct hf_acquire_options options = by_hand(ttls[i]);

        check_row(hf_acquire(world->store, "job", &options, &lease, &err) == HF_INVALID, i);
        check_row(lease == NULL, i);
    }
    assert_int_equal(hf_acquire(world->store, "job", &no_size, &lease, &err), HF_INVALID);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0); /* the store was never asked */
}

static void a_store_without_detached_leases(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};
    struct hf_lease *lease;
    struct hf_error err;

    fake_ops(world->fake)->features = 0;
    assert_int_equal(hf_store_features(world->store), 0);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_UNSUPPORTED);
    assert_null(strstr(err.text, "secret"));
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

static unsigned poor(struct hf_store_base *base)
{
    (void)base;
    return HF_FEATURE_FAIR;
}

/* Stores of one table may differ: the open one is asked. */
static void what_an_open_store_can_do(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = {.size = sizeof options, .detached = true};
    struct hf_lease *lease;

    fake_ops(world->fake)->open_features = poor;
    assert_int_equal(hf_store_features(world->store), HF_FEATURE_FAIR);
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_UNSUPPORTED);
    /* A table of the time before it is smaller. */
    fake_ops(world->fake)->size = offsetof(struct hf_store_ops, open_features);
    assert_true((hf_store_features(world->store) & HF_FEATURE_DETACHED) != 0);
    give(take(world, &options));
}

/* Every answer reaches the caller as it is: unknown above all is not busy. */
static void answers_pass_through(void **state)
{
    static const enum hf_status answers[] = {HF_BUSY,        HF_CANCELLED,  HF_UNKNOWN,
                                             HF_UNREACHABLE, HF_QUARANTINE, HF_DENIED,
                                             HF_UNSUPPORTED, HF_CORRUPT,    HF_NOMEM};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct hf_lease *lease = (struct hf_lease *)world;
        struct hf_error err = {0};

        fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = answers[i]});
        check_row(hf_acquire(world->store, "job", NULL, &lease, &err) == answers[i], i);
        check_row(lease == NULL && err.code == answers[i], i);
        check_row(strstr(err.text, "job") != NULL, i);
    }
}

static void a_token_out_of_range_is_given_back(void **state)
{
    static const struct fake_answer bad[] = {
        {.no_token = true}, {.token = (uint64_t)INT64_MAX + 1}, {.token = UINT64_MAX}};
    struct world *world = *state;
    struct hf_lease *lease;

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_error err;

        fake_next(world->fake, FAKE_ACQUIRE, bad[i]);
        check_row(hf_acquire(world->store, "job", NULL, &lease, &err) == HF_CORRUPT, i);
        check_row(lease == NULL, i);
        check_row(fake_count(world->fake, FAKE_RELEASE) == i + 1, i);
        check_row(strcmp(fake_call(world->fake, FAKE_RELEASE, i).owner,
                         fake_call(world->fake, FAKE_ACQUIRE, i).owner) == 0,
                  i);
    }
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.token = INT64_MAX});
    lease = take(world, NULL);
    assert_true(hf_lease_token(lease) == INT64_MAX);
    give(lease);
}

/* The grant is as old as its request: what is over when it arrives was never held. */
static void a_grant_that_comes_too_late_is_given_back(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(1000);
    struct hf_lease *lease;
    struct hf_error err;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.sent_ms_ago = 990});
    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, &err), HF_UNKNOWN);
    assert_null(lease);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    assert_string_equal(fake_call(world->fake, FAKE_RELEASE, 0).owner,
                        fake_call(world->fake, FAKE_ACQUIRE, 0).owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(what_the_defaults_ask_for),
        with_store(a_fresh_owner_for_every_attempt),
        with_store(options_reach_the_store),
        with_store(an_older_caller_knows_fewer_options),
        with_store(callers_mistakes),
        with_store(a_store_without_detached_leases),
        with_store(what_an_open_store_can_do),
        with_store(answers_pass_through),
        with_store(a_token_out_of_range_is_given_back),
        with_store(a_grant_that_comes_too_late_is_given_back),
    };

    return cmocka_run_group_tests_name("client_acquire", tests, NULL, NULL);
}
