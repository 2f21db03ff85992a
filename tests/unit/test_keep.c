/* test_keep.c - what a keeper does about a lease. */
#include "../support/check.h"
#include "core/keep.h"

#define MS 1000000LL
#define S  1000000000LL

static struct hf__lease_core held(uint32_t ttl_ms)
{
    struct hf__lease_core lease = {0};

    hf__lease_granted(&lease, 10 * S, ttl_ms);
    return lease;
}

static void test_due(void **state)
{
    struct hf__lease_core lease = held(3000);

    (void)state;
    assert_int_equal(hf__keep_due_ns(&lease), 11 * S);
    lease.deadline_ns = 10 * S + 5 * MS; /* adopted with little left */
    assert_int_equal(hf__keep_due_ns(&lease), 10 * S + 5 * MS);
    hf__lease_refused(&lease, HF_LOSS_TAKEN);
    assert_int_equal(hf__keep_due_ns(&lease), 0);
    /* Whatever the ttl, a break is heard within ten seconds. */
    lease = held(30000);
    assert_int_equal(hf__keep_due_ns(&lease), 20 * S);
    lease = held(HF_TTL_MAX_MS);
    assert_int_equal(hf__keep_due_ns(&lease), 20 * S);
    assert_int_equal(hf__keep_next_ns(&lease, HF_UNREACHABLE, 20 * S), 21 * S);
}

static void test_look(void **state)
{
    struct hf__lease_core lease = held(3000);
    int64_t due_ns = -1;

    (void)state;
    assert_int_equal(hf__keep_decide(&lease, false, 11 * S, &due_ns), HF__KEEP_RENEW);
    assert_int_equal(due_ns, -1);
    assert_int_equal(hf__keep_decide(&lease, true, 11 * S, &due_ns), HF__KEEP_WAIT);
    assert_int_equal(due_ns, 11 * S + MS);
    /* The deadline passes while the owner is at it: lost, and told when the owner is done. */
    assert_int_equal(hf__keep_decide(&lease, true, 14 * S, &due_ns), HF__KEEP_WAIT);
    assert_int_equal(lease.state, HF__LEASE_LOST);
    assert_int_equal(hf__keep_decide(&lease, false, 14 * S, &due_ns), HF__KEEP_ANNOUNCE);
}

static void test_limit(void **state)
{
    struct hf__lease_core lease = held(3000);

    (void)state;
    assert_int_equal(hf__keep_limit_ns(&lease, 11 * S), 11 * S + 300 * MS);
    assert_int_equal(hf__keep_limit_ns(&lease, lease.deadline_ns - MS), lease.deadline_ns);
    lease = held(100);
    assert_int_equal(hf__keep_limit_ns(&lease, 10 * S), 10 * S + 50 * MS);
    lease = held(60000);
    assert_int_equal(hf__keep_limit_ns(&lease, 10 * S), 11 * S);
    assert_true(hf__keep_along(&lease, 31 * S, 30 * S));
    assert_false(hf__keep_along(&lease, 31 * S + 1, 30 * S));
}

static void test_answers(void **state)
{
    struct hf__lease_core lease = held(3000);
    struct hf__renewal renewal = {.ttl_ms = 3000, .before_ns = 11 * S, .sent_at_ns = 11 * S};
    int64_t deadline_ns = lease.deadline_ns;

    (void)state;
    /* No answer: as before, but sooner again. */
    renewal.status = HF_UNKNOWN;
    hf__keep_answered(&lease, &renewal, 11 * S + 300 * MS);
    assert_int_equal(lease.deadline_ns, deadline_ns);
    assert_int_equal(hf__keep_next_ns(&lease, HF_UNKNOWN, 11 * S + 300 * MS), 11 * S + 400 * MS);
    /* Yes, for less than was asked for. */
    renewal.status = HF_OK;
    renewal.granted_ms = 1500;
    hf__keep_answered(&lease, &renewal, 11 * S + 500 * MS);
    assert_int_equal(lease.deadline_ns, hf__deadline_ns(11 * S, 1500));
    assert_int_equal(hf__keep_next_ns(&lease, HF_OK, 11 * S + 500 * MS), 11 * S + 500 * MS);
    /* What the caller cannot have asked changes nothing. */
    renewal.status = HF_UNSUPPORTED;
    hf__keep_answered(&lease, &renewal, 12 * S);
    assert_int_equal(lease.deadline_ns, hf__deadline_ns(11 * S, 1500));
    /* No. */
    renewal.status = HF_LOST;
    hf__keep_answered(&lease, &renewal, 12 * S);
    assert_int_equal(lease.loss, HF_LOSS_TAKEN);
    assert_int_equal(hf__keep_next_ns(&lease, HF_LOST, 12 * S), 0);
}

static void test_silence_until_the_deadline(void **state)
{
    struct hf__lease_core lease = held(3000);
    struct hf__renewal renewal = {.ttl_ms = 3000, .before_ns = 11 * S, .status = HF_UNREACHABLE};

    (void)state;
    hf__keep_answered(&lease, &renewal, lease.deadline_ns);
    assert_int_equal(lease.state, HF__LEASE_LOST);
    assert_int_equal(lease.loss, HF_LOSS_UNREACHABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_look),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_silence_until_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
