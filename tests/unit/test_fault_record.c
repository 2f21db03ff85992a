/* test_fault_record.c - records behind a line that loses requests and answers: what the writer is
 * told is what is on record, and nothing is written twice, late or by somebody who lost the lock.
 * run: threads */
#include "../support/record.h"
#include "fault.h"

#include <string.h>

static struct hf_lease *take(struct world *world, uint32_t ttl_ms, bool keeper)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = ttl_ms,
                                         .no_keeper = !keeper,
                                         .on_lost = on_lost,
                                         .data = world};
    struct hf_lease *lease;

    assert_int_equal(hf_acquire(world->store, "job", &options, &lease, NULL), HF_OK);
    return lease;
}

static void fault(struct world *world, enum fault_call call, struct fault how)
{
    how.call = call;
    how.from = how.from != 0 ? how.from : 1;
    how.times = how.times != 0 ? how.times : 1;
    fault_add(world->faults, how);
}

struct seen {
    char value[32];
    uint64_t number;
};

static bool note(const struct hf_record *record, void *data)
{
    struct seen *seen = data;

    (void)snprintf(seen->value, sizeof seen->value, "%s", (const char *)record->value);
    seen->number = record->number;
    return true;
}

static struct seen look(struct world *world)
{
    struct seen seen = {.value = "nothing"};

    assert_int_equal(get_record(world->other, "job", "k", note, &seen, NULL), HF_OK);
    return seen;
}

static enum hf_status put(struct hf_lease *lease, const char *value, struct hf_error *err)
{
    return hf_record_put(lease, "k", value, strlen(value), 0, err);
}

/* Sent again with the same number: the store finds it is not newer, and reading tells why. */
static void the_answer_to_a_put_is_lost(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, false);
    struct hf_error err;

    fault(world, FAULT_RECORD_PUT, (struct fault){.after = true, .status = HF_UNKNOWN});
    assert_int_equal(put(lease, "done", &err), HF_OK);
    assert_string_equal(err.text, "");
    assert_string_equal(look(world).value, "done");
    assert_int_equal(look(world).number, 1);
    assert_int_equal(fault_made(world->faults, FAULT_RECORD_PUT), 2);
    assert_int_equal(fault_made(world->faults, FAULT_RECORD_GET), 1);
    assert_int_equal(put(lease, "next", &err), HF_OK);
    assert_int_equal(look(world).number, 2);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void a_put_that_is_lost_is_sent_again(void **state)
{
    static const enum hf_status how[] = {HF_UNKNOWN, HF_UNREACHABLE};

    for (size_t i = 0; i < COUNT(how); i++) {
        struct world *world = *state;
        struct hf_lease *lease = take(world, 60000, false);

        fault(world, FAULT_RECORD_PUT, (struct fault){.status = how[i], .times = 2});
        assert_int_equal(put(lease, "done", NULL), HF_OK);
        assert_string_equal(look(world).value, "done");
        assert_int_equal(look(world).number, 1);
        assert_int_equal(hf_release(lease, NULL), HF_OK);
        fault_clear(world->faults);
    }
}

/* It was written, its answer was lost, and so is the answer to the question what became of it. */
static void reading_back_is_tried_again(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, false);

    fault(world, FAULT_RECORD_PUT, (struct fault){.after = true, .status = HF_UNKNOWN});
    fault(world, FAULT_RECORD_GET, (struct fault){.status = HF_UNREACHABLE, .times = 2});
    assert_int_equal(put(lease, "done", NULL), HF_OK);
    assert_int_equal(look(world).number, 1);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* To the end of the lease: what had no answer may be there, and what was never sent is not. */
static void no_answer_to_the_end_of_the_lease(void **state)
{
    static const struct {
        struct fault fault;
        enum hf_status status;
        const char *there;
    } rows[] = {
        {{.status = HF_UNKNOWN, .after = true, .times = UINT32_MAX}, HF_UNKNOWN, "done"},
        {{.status = HF_UNKNOWN, .times = UINT32_MAX}, HF_UNKNOWN, "nothing"},
        {{.status = HF_UNREACHABLE, .times = UINT32_MAX}, HF_LOST, "nothing"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_lease *lease;
        struct hf_error err;
        struct world *world;

        assert_int_equal(set_up(state), 0);
        world = *state;
        lease = take(world, 500, false);
        fault(world, FAULT_RECORD_PUT, rows[i].fault);
        fault(world, FAULT_RECORD_GET, (struct fault){.status = HF_UNKNOWN, .times = UINT32_MAX});
        check_row(put(lease, "done", &err) == rows[i].status, i);
        check_row(strstr(err.text, "job") != NULL, i);
        check_row(strcmp(look(world).value, rows[i].there) == 0, i);
        check_row(hf_release(lease, NULL) == HF_LOST, i);
        (void)tear_down(state);
    }
}

/* Renewals pass and the record does not: the keeper keeps the lease, and the put has an end. */
static void a_put_has_an_end_though_the_lease_has_none(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 600, true);
    int64_t start_ns = hf__now_ns();
    enum hf_status status;

    fault(world, FAULT_RECORD_PUT, (struct fault){.status = HF_UNREACHABLE, .times = UINT32_MAX});
    status = put(lease, "done", NULL);
    if (atomic_load(&world->lost) == 0) { /* unless the machine is too busy */
        assert_int_equal(status, HF_UNREACHABLE);
        assert_true(hf__now_ns() - start_ns >= 600 * HF__NS_PER_MS);
        assert_true(fault_made(world->faults, FAULT_RENEW) > 0);
        fault_clear(world->faults);
        assert_true(put(lease, "done", NULL) == HF_OK || atomic_load(&world->lost) == 1);
    }
    (void)!hf_release(lease, NULL);
}

/* Held as far as the lease knows, and not in the store: the lease hears of it as well. */
static void the_store_says_lost(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, true);
    struct hf_lease *thief;
    struct hf_error err;

    assert_int_equal(
        hf_adopt(world->other, "job", hf_lease_owner(lease), hf_lease_token(lease), &thief, NULL),
        HF_OK);
    assert_int_equal(hf_release(thief, NULL), HF_OK);
    assert_int_equal(put(lease, "late", &err), HF_LOST);
    assert_int_not_equal(hf_lease_loss(lease), HF_LOSS_NONE);
    check_soon(atomic_load(&world->lost) == 1);
    assert_string_equal(look(world).value, "nothing");
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

/* A try without an answer arrived, and the lock is gone at the next one: it is on record. */
static void written_and_then_lost(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, false);
    struct hf_lease *thief;

    assert_int_equal(
        hf_adopt(world->other, "job", hf_lease_owner(lease), hf_lease_token(lease), &thief, NULL),
        HF_OK);
    fault(world, FAULT_RECORD_PUT, (struct fault){.after = true, .status = HF_UNKNOWN});
    fault(world, FAULT_RECORD_PUT, (struct fault){.from = 2, .after = true, .status = HF_LOST});
    assert_int_equal(put(lease, "done", NULL), HF_OK);
    assert_string_equal(look(world).value, "done");
    /* And the same, never arrived. */
    fault_clear(world->faults);
    fault(world, FAULT_RECORD_PUT, (struct fault){.status = HF_UNKNOWN});
    fault(world, FAULT_RECORD_PUT, (struct fault){.from = 2, .status = HF_LOST});
    assert_int_equal(put(lease, "more", NULL), HF_LOST);
    assert_string_equal(look(world).value, "done");
    assert_int_equal(hf_release(thief, NULL), HF_OK);
    (void)!hf_release(lease, NULL);
}

/* Two processes of one hold with the same number in mind: neither takes the other's record for its
 * own, and the later put is the one that stays. */
static void an_equal_number_is_not_ours(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, false);
    struct hf_lease *adopted;

    assert_int_equal(
        hf_adopt(world->other, "job", hf_lease_owner(lease), hf_lease_token(lease), &adopted, NULL),
        HF_OK);
    adopted->adopted = false; /* it counts from 1, as the first one does */
    assert_int_equal(put(adopted, "them", NULL), HF_OK);
    assert_int_equal(put(lease, "ours", NULL), HF_OK);
    assert_string_equal(look(world).value, "ours");
    assert_int_equal(look(world).number, 2);
    /* Even if the first try had no answer. */
    assert_int_equal(put(adopted, "them", NULL), HF_OK);
    fault(world, FAULT_RECORD_PUT, (struct fault){.status = HF_UNKNOWN});
    assert_int_equal(put(lease, "ours", NULL), HF_OK);
    assert_string_equal(look(world).value, "ours");
    hf_leave(adopted);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

/* What has expired is not seen, and may still be on file with a high number. */
static void an_expired_record_is_outranked(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, false);
    struct hf_lease *adopted;

    lease->last_number = 1000;
    assert_int_equal(hf_record_put(lease, "k", "x", 1, 1, NULL), HF_OK);
    check_soon(strcmp(look(world).value, "nothing") == 0);
    assert_int_equal(
        hf_adopt(world->other, "job", hf_lease_owner(lease), hf_lease_token(lease), &adopted, NULL),
        HF_OK);
    adopted->adopted = false;
    assert_int_equal(put(adopted, "new", NULL), HF_OK);
    assert_string_equal(look(world).value, "new");
    hf_leave(adopted);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

enum { THREADS = 4, PUTS = 20 };

static void *put_often(void *data)
{
    for (int i = 0; i < PUTS; i++)
        if (put(data, "x", NULL) != HF_OK)
            return data;
    return NULL;
}

static void threads_take_turns(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, true);
    pthread_t threads[THREADS];
    void *failed;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_often, lease), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(look(world).number, THREADS * PUTS);
    assert_int_equal(fault_made(world->faults, FAULT_RECORD_GET), 0); /* one request each */
    assert_int_equal(hf_release(lease, NULL), HF_OK);
}

static void *put_slowly(void *data)
{
    (void)!put(data, "slow", NULL);
    return NULL;
}

/* The store is closed under a put: it ends, and the handle stays good for the release. */
static void closing_ends_a_put(void **state)
{
    struct world *world = *state;
    struct hf_lease *lease = take(world, 60000, true);
    pthread_t thread;

    fault(world, FAULT_RECORD_PUT, (struct fault){.status = HF_UNREACHABLE, .times = UINT32_MAX});
    assert_int_equal(pthread_create(&thread, NULL, put_slowly, lease), 0);
    check_soon(fault_made(world->faults, FAULT_RECORD_PUT) > 0);
    hf_close(world->store);
    world->store = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(put(lease, "late", NULL), HF_LOST);
    assert_int_equal(hf_release(lease, NULL), HF_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(the_answer_to_a_put_is_lost),
        with_world(a_put_that_is_lost_is_sent_again),
        with_world(reading_back_is_tried_again),
        cmocka_unit_test(no_answer_to_the_end_of_the_lease),
        with_world(a_put_has_an_end_though_the_lease_has_none),
        with_world(the_store_says_lost),
        with_world(written_and_then_lost),
        with_world(an_equal_number_is_not_ours),
        with_world(an_expired_record_is_outranked),
        with_world(threads_take_turns),
        with_world(closing_ends_a_put),
    };

    return cmocka_run_group_tests_name("fault_record", tests, NULL, NULL);
}
