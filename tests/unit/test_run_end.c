/* test_run_end.c - when `holdfast run` ends the tree: the plan, without any clock or process. */
#include "../support/check.h"
#include "cli/run/end.c"

#include <string.h>

#define S  HF__NS_PER_S
#define MS HF__NS_PER_MS

/* ttl 30 s, grace 5 s, deadline at 100 s of the machine's life. */
static struct run_page page_with(enum run_on_loss on_loss)
{
    struct run_options options = {
        .take.ttl_ms = 30000, .grace_ms = 5000, .on_loss = on_loss, .max_runtime_ms = 0};
    struct run_page page;

    memset(&page, 0, sizeof page);
    run_page_init(&page, &options);
    atomic_store(&page.deadline_ns, 100 * S);
    return page;
}

static void the_lease_asks_for_term_then_kill(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan = run_plan_of(&page);

    (void)state;
    assert_int_equal(plan.kill_ns, 100 * S - 250 * MS);
    assert_int_equal(plan.term_ns, 95 * S - 250 * MS);
    assert_int_equal(plan.cause, RUN_LOST);
}

static void the_margin_is_small_for_a_small_ttl(void **state)
{
    (void)state;
    assert_int_equal(run_margin_ns(30000), 250 * MS);
    assert_int_equal(run_margin_ns(2000), 250 * MS);
    assert_int_equal(run_margin_ns(800), 100 * MS);
    assert_int_equal(run_margin_ns(100), 12500000);
}

static void a_renewal_moves_the_plan(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan;

    (void)state;
    atomic_store(&page.deadline_ns, 110 * S);
    plan = run_plan_of(&page);
    assert_int_equal(plan.term_ns, 105 * S - 250 * MS);
}

static void a_renewal_does_not_take_back_what_began(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan = run_plan_of(&page);
    struct run_plan later;

    (void)state;
    assert_true(run_page_begin(&page, &plan, plan.term_ns));
    assert_false(run_page_begin(&page, &plan, plan.term_ns + 1));
    atomic_store(&page.deadline_ns, 200 * S);
    later = run_plan_of(&page);
    assert_int_equal(later.kill_ns, plan.term_ns + 5 * S);
    assert_int_equal(later.cause, RUN_LOST);
}

static void a_late_start_does_not_move_kill_past_the_limit(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan = run_plan_of(&page);

    (void)state;
    assert_true(run_page_begin(&page, &plan, 99 * S));
    plan = run_plan_of(&page);
    assert_int_equal(plan.kill_ns, 100 * S - 250 * MS);
}

static void an_order_comes_first(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan;

    (void)state;
    atomic_store(&page.deadline_ns, hf__now_ns() + 60 * S);
    run_page_order(&page, RUN_LEFTOVERS);
    run_page_order(&page, RUN_ORPHANED); /* the first stands */
    plan = run_plan_of(&page);
    assert_true(plan.term_ns <= hf__now_ns());
    assert_int_equal(plan.kill_ns, plan.term_ns + 5 * S);
    assert_int_equal(plan.cause, RUN_LEFTOVERS);
}

static void kill_means_no_grace_after_a_loss(void **state)
{
    struct run_page page = page_with(RUN_LOSS_KILL);
    struct run_plan plan = run_plan_of(&page);

    (void)state;
    assert_int_equal(plan.term_ns, 100 * S - 250 * MS);
    assert_int_equal(plan.kill_ns, plan.term_ns);
    atomic_store(&page.order_cause, RUN_LOST);
    atomic_store(&page.order_ns, 50 * S);
    plan = run_plan_of(&page);
    assert_int_equal(plan.kill_ns, 50 * S);
    atomic_store(&page.order_cause, RUN_LEFTOVERS);
    plan = run_plan_of(&page);
    assert_int_equal(plan.kill_ns, 55 * S);
}

static void warn_ends_nothing_by_itself(void **state)
{
    struct run_page page = page_with(RUN_LOSS_WARN);
    struct run_plan plan = run_plan_of(&page);

    (void)state;
    assert_int_equal(plan.term_ns, HF_NEVER);
    assert_int_equal(plan.kill_ns, HF_NEVER);
    atomic_store(&page.order_cause, RUN_ORPHANED);
    atomic_store(&page.order_ns, 99 * S);
    plan = run_plan_of(&page);
    assert_int_equal(plan.kill_ns, 104 * S);
}

static void the_runtime_is_watched_without_a_lease(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);
    struct run_plan plan;

    (void)state;
    atomic_store(&page.deadline_ns, HF_NEVER);
    assert_int_equal(run_plan_of(&page).term_ns, HF_NEVER);
    page.stop_at_ns = 40 * S;
    plan = run_plan_of(&page);
    assert_int_equal(plan.term_ns, 40 * S);
    assert_int_equal(plan.kill_ns, 45 * S);
    assert_int_equal(plan.cause, RUN_MAX_RUNTIME);
}

static void a_command_is_started_while_the_lease_has_time(void **state)
{
    struct run_page page = page_with(RUN_LOSS_TERM);

    (void)state;
    assert_int_equal(run_page_decide(&page, 90 * S, false), RUN_START_OPEN);
    assert_int_equal(run_page_decide(&page, 90 * S, true), RUN_STARTED);
    assert_int_equal(run_page_decide(&page, 101 * S, false), RUN_STARTED); /* it stands */
}

static void a_command_is_not_started_when_it_would_be_ended_at_once(void **state)
{
    static const enum run_on_loss all[] = {RUN_LOSS_TERM, RUN_LOSS_KILL, RUN_LOSS_WARN};
    static const int64_t late_ns[] = {95 * S, 100 * S - 250 * MS, 100 * S};

    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        struct run_page page = page_with(all[i]);

        check_row(run_page_decide(&page, late_ns[i] - 300 * MS, false) == RUN_START_OPEN, i);
        check_row(run_page_decide(&page, late_ns[i], i % 2 == 0) == RUN_START_REFUSED, i);
        check_row(run_page_decide(&page, 90 * S, true) == RUN_START_REFUSED, i); /* it stands */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lease_asks_for_term_then_kill),
        cmocka_unit_test(the_margin_is_small_for_a_small_ttl),
        cmocka_unit_test(a_renewal_moves_the_plan),
        cmocka_unit_test(a_renewal_does_not_take_back_what_began),
        cmocka_unit_test(a_late_start_does_not_move_kill_past_the_limit),
        cmocka_unit_test(an_order_comes_first),
        cmocka_unit_test(kill_means_no_grace_after_a_loss),
        cmocka_unit_test(warn_ends_nothing_by_itself),
        cmocka_unit_test(the_runtime_is_watched_without_a_lease),
        cmocka_unit_test(a_command_is_started_while_the_lease_has_time),
        cmocka_unit_test(a_command_is_not_started_when_it_would_be_ended_at_once),
    };

    return cmocka_run_group_tests_name("run_end", tests, NULL, NULL);
}
