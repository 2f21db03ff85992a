/* test_client_several.c - what libholdfast asks of a store to take several locks, and in which
 * order.
 * run: threads */
#include "client.h"

#include <holdfast/several.h>
#include <string.h>

static const char *const names[] = {"c", "a", "b"};

/* The index-th call of a kind was about this lock. */
static void check_call(struct world *world, enum fake_op op, size_t index, const char *name)
{
    assert_string_equal(fake_call(world->fake, op, index).name, name);
}

static void all_in_the_order_of_their_names(void **state)
{
    struct world *world = *state;
    struct hf_lease *leases[3];
    struct hf_error err;

    assert_int_equal(hf_acquire_all(world->store, names, 3, NULL, leases, &err), HF_OK);
    check_call(world, FAKE_ACQUIRE, 0, "a");
    check_call(world, FAKE_ACQUIRE, 1, "b");
    check_call(world, FAKE_ACQUIRE, 2, "c");
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(hf_lease_name(leases[i]), names[i]); /* in the caller's order */
    assert_true(hf_all_remaining_ms(leases, 3) > 20000);
    assert_int_equal(hf_release_all(leases, 3, &err), HF_OK);
    check_call(world, FAKE_RELEASE, 0, "c");
    check_call(world, FAKE_RELEASE, 1, "b");
    check_call(world, FAKE_RELEASE, 2, "a");
    assert_null(leases[0]);
}

static void all_or_nothing(void **state)
{
    static const enum hf_status answers[] = {HF_BUSY, HF_UNREACHABLE, HF_UNKNOWN, HF_DENIED,
                                             HF_QUARANTINE};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(answers); i++) {
        size_t released = fake_count(world->fake, FAKE_RELEASE);
        struct hf_lease *leases[3] = {(void *)names, (void *)names, (void *)names};
        struct hf_error err;

        fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_OK});
        fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_OK});
        fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = answers[i]});
        check_row(hf_acquire_all(world->store, names, 3, NULL, leases, &err) == answers[i], i);
        assert_non_null(strstr(err.text, "\"c\""));
        check_call(world, FAKE_RELEASE, released, "b");
        check_call(world, FAKE_RELEASE, released + 1, "a");
        for (size_t j = 0; j < 3; j++)
            assert_null(leases[j]);
    }
}

static void what_is_refused(void **state)
{
    static const char *const twice[] = {"a", "b", "a"};
    static const char *const same[] = {"a", "b", "b"}; /* in order, but for that */
    static const char *const bad[] = {"a", "b\n"};
    const char *many[HF_SEVERAL_MAX + 1];
    struct world *world = *state;
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    struct hf_error err;
    size_t which;

    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = "x";
    assert_int_equal(hf_acquire_all(world->store, twice, 3, NULL, leases, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "lock \"a\" in store "));
    assert_non_null(strstr(err.text, " is named twice"));
    assert_int_equal(hf_acquire_all(world->store, twice, 0, NULL, leases, &err), HF_INVALID);
    assert_int_equal(hf_acquire_all(world->store, many, COUNT(many), NULL, leases, &err),
                     HF_INVALID);
    assert_int_equal(hf_acquire_any(world->store, bad, 2, NULL, leases, &which, &err), HF_INVALID);
    assert_int_equal(which, 1);
    assert_int_equal(hf_acquire_any(world->store, twice, 3, NULL, leases, &which, &err),
                     HF_INVALID);
    assert_int_equal(which, 2);
    assert_int_equal(hf_acquire_any(world->store, same, 3, NULL, leases, &which, &err), HF_INVALID);
    assert_null(leases[0]);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

/* Names that rise need fewer looks; each is checked all the same. */
static void names_that_rise(void **state)
{
    static const char *const rows[][3] = {
        {"s#1", "s#2", "s#2"}, {"s#9", "s#10", "s#9"},   {"s#1", "s#2", "s#\x7f"},
        {"s#1", "s#2", ""},    {"s#1", "s#2", "s#3\n"},  {"s#1", "s#2", NULL},
        {"a", "b", "\x7f"},    {"s#1", "s#2", "s#\x1f"}, {"9", "10", "10"},
    };
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_error err;
    size_t which;

    for (size_t i = 0; i < COUNT(rows); i++) {
        which = 0;
        check_row(
            hf_acquire_any(world->store, rows[i], 3, NULL, &lease, &which, &err) == HF_INVALID, i);
        check_row(which == 2, i);
    }
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

static void any_tries_in_the_given_order(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_error err;
    size_t which;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, &err), HF_OK);
    assert_int_equal(which, 1);
    assert_string_equal(hf_lease_name(lease), "a");
    check_call(world, FAKE_ACQUIRE, 0, "c");
    check_call(world, FAKE_ACQUIRE, 1, "a");
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 2);
    /* The owner is the second attempt's, and so is what the lease gives back. */
    assert_string_equal(hf_lease_owner(lease), fake_call(world->fake, FAKE_ACQUIRE, 1).owner);
    give(lease);
    assert_string_equal(fake_call(world->fake, FAKE_RELEASE, 0).owner,
                        fake_call(world->fake, FAKE_ACQUIRE, 1).owner);
}

static void any_spreads_if_told_to(void **state)
{
    struct world *world = *state;
    struct hf_acquire_options options = by_hand(1000);
    bool seen[3] = {false};

    options.spread = true;
    for (int i = 0; i < 200; i++) {
        struct hf_lease *lease;
        size_t which;

        assert_int_equal(hf_acquire_any(world->store, names, 3, &options, &lease, &which, NULL),
                         HF_OK);
        assert_string_equal(hf_lease_name(lease), names[which]);
        seen[which] = true;
        give(lease);
    }
    assert_true(seen[0] && seen[1] && seen[2]);
}

/* A request without an answer may have taken effect: that owner is given back, and the caller hears
 * which lock it is about. */
static void any_of_unknown_fate(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease;
    struct hf_error err;
    size_t which;

    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_UNKNOWN});
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, &err),
                     HF_UNKNOWN);
    assert_int_equal(which, 1);
    assert_non_null(strstr(err.text, "\"a\""));
    assert_null(lease);
    assert_int_equal(fake_count(world->fake, FAKE_RELEASE), 1);
    assert_string_equal(fake_call(world->fake, FAKE_RELEASE, 0).owner,
                        fake_call(world->fake, FAKE_ACQUIRE, 1).owner);
    assert_int_equal(fake_call(world->fake, FAKE_RELEASE, 0).token, 0);
}

static char last_owners[3][HF_OWNER_LEN + 1];

/* The one slot of a store that has one. */
static enum hf_status answer_any(struct hf_store_base *store, const struct hf_claim *claims,
                                 size_t count, size_t *which, struct hf_grant *grant,
                                 struct hf_error *err)
{
    (void)err;
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strlen(claims[i].owner), HF_OWNER_LEN);
        assert_string_equal(claims[i].name, names[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(claims[i].owner, claims[j].owner);
        assert_memory_equal(claims[i].owner, claims[0].owner, HF_OWNER_LEN - 2);
        assert_string_not_equal(claims[i].owner, last_owners[i]);
        (void)stpcpy(last_owners[i], claims[i].owner);
    }
    *which = 2;
    grant->token = 77;
    grant->sent_at_ns = store->host->now_ns();
    return HF_OK;
}

static void any_by_the_slot_of_the_store(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease;
    size_t which;

    fake_ops(world->fake)->acquire_any = answer_any;
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, NULL), HF_OK);
    assert_int_equal(which, 2);
    assert_string_equal(hf_lease_name(lease), "b");
    assert_int_equal(hf_lease_token(lease), 77);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
    give(lease);
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, NULL), HF_OK);
    give(lease);
    /* One name needs no such slot. */
    assert_int_equal(hf_acquire_any(world->store, names, 1, NULL, &lease, &which, NULL), HF_OK);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 1);
    give(lease);
}

/* The slot for what is free at a glance: what it was asked, and what it says. */
static struct {
    enum hf_status answer;
    size_t count;
    char name[HF_NAME_MAX + 1], owner[HF_OWNER_LEN + 1];
} at_a_glance;

static enum hf_status answer_free(struct hf_store_base *base, const struct hf_claim *claim,
                                  struct hf_grant *grant, struct hf_error *err)
{
    (void)base;
    (void)err;
    at_a_glance.count++;
    (void)stpcpy(at_a_glance.name, claim->name);
    (void)stpcpy(at_a_glance.owner, claim->owner);
    if (at_a_glance.answer == HF_OK)
        *grant = (struct hf_grant){.token = 4711, .sent_at_ns = hf__now_ns()};
    return at_a_glance.answer;
}

static void any_that_is_free_at_a_glance(void **state)
{
    static const char *const twice[] = {"c", "a", "c"};
    struct world *world = *state;
    struct hf_acquire_options options = {.size = sizeof options, .spread = true};
    struct hf_lease *lease;
    size_t which;

    memset(&at_a_glance, 0, sizeof at_a_glance);
    fake_ops(world->fake)->acquire_free = answer_free;
    assert_int_equal(hf_acquire_any(world->store, twice, 3, NULL, &lease, &which, NULL),
                     HF_INVALID);
    assert_int_equal(at_a_glance.count, 0); /* names are checked before anything is taken */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hf_acquire_any(world->store, names, 3, &options, &lease, &which, NULL),
                         HF_OK);
        assert_string_equal(hf_lease_name(lease), names[which]);
        assert_string_equal(at_a_glance.name, names[which]);
        assert_string_equal(hf_lease_owner(lease), at_a_glance.owner);
        assert_int_equal(hf_lease_token(lease), 4711);
        assert_int_equal(hf_release(lease, NULL), HF_OK);
    }
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 0);
}

/* The others are asked for with the rest, each once; of an unknown fate is only what was tried. */
static void any_that_is_not_free_at_a_glance(void **state)
{
    struct hf_acquire_options options = {.size = sizeof options, .wait_ms = 3000};
    struct world *world = *state;
    struct hf_lease *lease;
    size_t which;

    memset(&at_a_glance, 0, sizeof at_a_glance);
    at_a_glance.answer = HF_UNSUPPORTED;
    fake_ops(world->fake)->acquire_free = answer_free;
    fake_next(world->fake, FAKE_ACQUIRE, (struct fake_answer){.status = HF_BUSY});
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, NULL), HF_OK);
    assert_int_equal(which, 1);
    check_call(world, FAKE_ACQUIRE, 0, "c");
    check_call(world, FAKE_ACQUIRE, 1, "a");
    assert_int_equal(hf_release(lease, NULL), HF_OK);

    at_a_glance.answer = HF_UNKNOWN;
    assert_int_equal(hf_acquire_any(world->store, names, 3, NULL, &lease, &which, NULL),
                     HF_UNKNOWN);
    assert_int_equal(fake_count(world->fake, FAKE_ACQUIRE), 2);
    options.wait_ms = 500;
    assert_int_not_equal(hf_acquire_any(world->store, names, 3, &options, &lease, &which, NULL),
                         HF_OK);
    assert_true(fake_count(world->fake, FAKE_RELEASE) > 1);
    for (size_t i = 1; i < fake_count(world->fake, FAKE_RELEASE); i++)
        check_call(world, FAKE_RELEASE, i, "c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {with_store(all_in_the_order_of_their_names),
                                       with_store(all_or_nothing),
                                       with_store(what_is_refused),
                                       with_store(names_that_rise),
                                       with_store(any_tries_in_the_given_order),
                                       with_store(any_spreads_if_told_to),
                                       with_store(any_of_unknown_fate),
                                       with_store(any_by_the_slot_of_the_store),
                                       with_store(any_that_is_free_at_a_glance),
                                       with_store(any_that_is_not_free_at_a_glance)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
