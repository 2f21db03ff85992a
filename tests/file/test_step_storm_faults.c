/* test_step_storm_faults.c - threads of several processes, killed and stopped at random steps; and
 * a storm without that, in which nobody is ever woken by the clock.
 * run: also long */
#include "step_storm.h"

static void expect_calm(const struct storm_plan *plan)
{
    struct step_storm *storm = step_storm_run(plan);

    print_message("# %ld holds, %ld renewals, %ld broken, %ld busy, %ld killed, %ld stopped, %ld "
                  "woken by the "
                  "clock\n",
                  atomic_load(&storm->holds), atomic_load(&storm->renewals),
                  atomic_load(&storm->breaks), atomic_load(&storm->waits),
                  atomic_load(&storm->kills), atomic_load(&storm->stops),
                  atomic_load(&storm->woken_by_clock));
    if (atomic_load(&storm->broken))
        fail_msg("%s", storm->text);
    assert_true(atomic_load(&storm->holds) > STORM_HOLDS_MIN);
    assert_true(!plan->kills || atomic_load(&storm->kills) > 0);
    assert_true(!plan->stops || atomic_load(&storm->stops) > 0);
    step_storm_free(storm);
}

static void kills_mapped(void **state)
{
    (void)state;
    expect_calm(&(struct storm_plan){
        .mapped = true, .kills = true, .ttl_ms = 60000, .for_ms = kit_rounds(3000)});
}

static void kills_and_stops_mapped(void **state)
{
    (void)state;
    expect_calm(&(struct storm_plan){
        .mapped = true, .kills = true, .stops = true, .ttl_ms = 300, .for_ms = kit_rounds(3000)});
}

static void kills_and_stops_guarded(void **state)
{
    (void)state;
    expect_calm(&(struct storm_plan){
        .kills = true, .stops = true, .ttl_ms = 300, .for_ms = kit_rounds(3000)});
}

static void nobody_relies_on_the_clock(void **state)
{
    (void)state;
    expect_calm(&(struct storm_plan){.mapped = true, .ttl_ms = 60000, .for_ms = kit_rounds(2500)});
    expect_calm(&(struct storm_plan){.ttl_ms = 60000, .for_ms = kit_rounds(2500)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_mapped), cmocka_unit_test(kills_and_stops_mapped),
        cmocka_unit_test(kills_and_stops_guarded), cmocka_unit_test(nobody_relies_on_the_clock)};

    return KIT_RUN(tests);
}
