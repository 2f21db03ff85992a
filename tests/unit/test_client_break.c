/* test_client_break.c - breaking a hold through libholdfast, and what its holder hears: over a
 * made-up store and over the embedded one.
 * run: threads */
#include "client.h"

#include <holdfast/record.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* What on_lost saw. */
struct heard {
    atomic_int count;
    enum hf_loss reason;
    bool known;
    struct hf_revocation revocation;
};

static void note_loss(struct hf_lease *lease, enum hf_loss reason, void *data)
{
    struct heard *heard = data;

    heard->reason = reason;
    heard->known = hf_lease_revocation(lease, &heard->revocation);
    atomic_fetch_add(&heard->count, 1);
}

/* Two clients of an embedded store. */
struct pair {
    char dir[64];
    struct hf_store *holder, *breaker;
};

static int open_pair(void **state)
{
    static struct pair pair;
    char url[80];

    check_temp_dir(pair.dir, sizeof pair.dir);
    (void)snprintf(url, sizeof url, "file:%s/store", pair.dir);
    assert_int_equal(hf_open(url, &pair.holder, NULL), HF_OK);
    assert_int_equal(hf_open(url, &pair.breaker, NULL), HF_OK);
    *state = &pair;
    return 0;
}

static int close_pair(void **state)
{
    struct pair *pair = *state;

    hf_close(pair->holder);
    hf_close(pair->breaker);
    check_remove_dir(pair->dir);
    return 0;
}
#define with_pair(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

static struct hf_lease *hold(struct hf_store *store, uint32_t ttl_ms, struct heard *heard)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = ttl_ms,
                                         .wait_ms = 5000,
                                         .on_lost = heard != NULL ? note_loss : NULL,
                                         .data = heard,
                                         .no_keeper = heard == NULL};
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(store, "job", &options, &lease, NULL), HF_OK);
    return lease;
}

static void break_it(struct hf_store *store, uint64_t token)
{
    const struct hf_break_options options = {
        .size = sizeof options, .label = "me", .reason = "be\nquick"};
    struct hf_broken broken;
    struct hf_error err;

    assert_int_equal(hf_break(store, "job", token, &options, &broken, &err), HF_OK);
    assert_true(broken.remaining_ms > 0 && !broken.detached && !broken.foreign && !broken.again);
    assert_true(broken.label[0] != '\0');
}

static bool is_free(struct hf_store *store)
{
    const struct hf_acquire_options options = {.size = sizeof options, .no_keeper = true};
    struct hf_lease *lease;

    if (hf_acquire(store, "job", &options, &lease, NULL) != HF_OK)
        return false;
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    return true;
}

/* The keeper finds out by itself, and on_lost can say by whom. */
static void the_holder_hears_by_whom(void **state)
{
    struct pair *pair = *state;
    struct heard heard = {.reason = HF_LOSS_NONE};
    struct hf_lease *lease = hold(pair->holder, 3000, &heard);
    struct hf_revocation revocation;
    struct hf_error err;

    assert_false(hf_lease_revocation(lease, &revocation));
    break_it(pair->breaker, hf_lease_token(lease));
    check_soon(atomic_load(&heard.count) == 1);
    assert_int_equal(heard.reason, HF_LOSS_BROKEN);
    assert_true(heard.known);
    assert_string_equal(heard.revocation.by, "me");
    assert_string_equal(heard.revocation.reason, "be?quick"); /* one line, whatever was given */
    assert_true(heard.revocation.at_ms > 0);
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(hf_renew(lease, 0, &err), HF_LOST);
    assert_non_null(strstr(err.text, "was broken by me: be?quick"));
    assert_false(is_free(pair->breaker));
    assert_int_equal(hf_release(lease, &err), HF_LOST);
    assert_non_null(strstr(err.text, "was broken by me: be?quick"));
    assert_true(is_free(pair->breaker));
    assert_int_equal(hf_last_break(pair->breaker, "job", &revocation, &err), HF_OK);
    assert_string_equal(revocation.by, "me"); /* it is over, and still known */
    assert_int_equal(hf_last_break(pair->breaker, "other", &revocation, &err), HF_OK);
    assert_true(revocation.at_ms == 0 && revocation.by[0] == '\0');
    assert_int_equal(hf_last_break(pair->breaker, "", &revocation, &err), HF_INVALID);
}

/* Until it is released, or its time is over, it may put down what became of its work. */
static void what_was_broken_may_write_records(void **state)
{
    struct pair *pair = *state;
    struct hf_lease *lease = hold(pair->holder, 600, NULL);
    struct hf_error err;

    break_it(pair->breaker, hf_lease_token(lease));
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    assert_int_equal(hf_record_put(lease, "outcome", "done", 4, 0, &err), HF_OK);
    hf__sleep_ns(700 * HF__NS_PER_MS);
    assert_int_equal(hf_record_put(lease, "outcome", "late", 4, 0, &err), HF_LOST);
    assert_non_null(strstr(err.text, "was broken by me"));
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

static void closing_gives_it_back(void **state)
{
    struct pair *pair = *state;
    struct hf_lease *lease = hold(pair->holder, 60000, NULL);

    break_it(pair->breaker, hf_lease_token(lease));
    assert_int_equal(hf_renew(lease, 0, NULL), HF_LOST);
    hf_close(pair->holder);
    pair->holder = NULL;
    assert_true(is_free(pair->breaker));
    assert_int_equal(hf_record_put(lease, "outcome", "done", 4, 0, NULL), HF_LOST);
    assert_int_equal(hf_lease_loss(lease), HF_LOSS_BROKEN);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

/* A holder that has not heard of it yet, and is done, had the lock to the end. */
static void a_release_may_come_first(void **state)
{
    struct pair *pair = *state;
    struct hf_lease *lease = hold(pair->holder, 60000, NULL);

    break_it(pair->breaker, hf_lease_token(lease));
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_true(is_free(pair->breaker));
}

static void what_cannot_be_broken(void **state)
{
    struct pair *pair = *state;
    struct hf_break_options now = {.size = sizeof now, .now = true};
    struct hf_store *readonly;
    struct hf_error err;
    struct hf_lease *lease = hold(pair->holder, 60000, NULL);
    uint64_t token = hf_lease_token(lease);

    assert_int_equal(hf_break(pair->breaker, "", token, NULL, NULL, &err), HF_INVALID);
    assert_int_equal(hf_break(pair->breaker, "job", 0, NULL, NULL, &err), HF_INVALID);
    assert_int_equal(hf_break(pair->breaker, "job", UINT64_MAX, NULL, NULL, &err), HF_INVALID);
    assert_int_equal(hf_break(pair->breaker, "job", token + 1, NULL, NULL, &err), HF_LOST);
    assert_non_null(strstr(err.text, "nothing was broken"));
    assert_int_equal(hf_break(pair->breaker, "job", 0, &now, NULL, &err), HF_LOST);
    assert_int_equal(hf_break(pair->breaker, "other", token, &now, NULL, &err), HF_LOST);
    assert_int_equal(hf_open_readonly(hf_store_url(pair->breaker), &readonly, NULL), HF_OK);
    assert_int_equal(hf_break(readonly, "job", token, NULL, NULL, &err), HF_INVALID);
    hf_close(readonly);
    assert_int_equal(hf_renew(lease, 0, NULL), HF_OK);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* A store that says broken and not by whom, and one that has no such slot. */
static void not_every_store_knows_by_whom(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(5000);
    struct hf_lease *lease = take(world, &options);
    struct hf_revocation revocation;
    struct hf_error err;

    fake_next(world->fake, FAKE_RENEW,
              (struct fake_answer){.status = HF_LOST, .loss = HF_LOSS_BROKEN});
    assert_int_equal(hf_renew(lease, 0, &err), HF_LOST);
    assert_non_null(strstr(err.text, "was broken"));
    assert_true(hf_lease_revocation(lease, &revocation));
    assert_string_equal(revocation.by, "");
    assert_int_equal(hf_break(world->store, "job", 1, NULL, NULL, &err), HF_UNSUPPORTED);
    assert_int_equal(hf_last_break(world->store, "job", &revocation, &err), HF_UNSUPPORTED);
    (void)!hf_release(lease, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_pair(the_holder_hears_by_whom), with_pair(what_was_broken_may_write_records),
        with_pair(closing_gives_it_back),    with_pair(a_release_may_come_first),
        with_pair(what_cannot_be_broken),    with_store(not_every_store_knows_by_whom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
