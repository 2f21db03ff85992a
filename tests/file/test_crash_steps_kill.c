/* test_crash_steps_kill.c - kill -9 at every step of a change, with mapped and with guarded words:
 * what is left is the old state, the new one, or something that the next one mends.
 * run: late asan */
#include "../support/steps.h"
#include "crash_steps.h"

#include <stdlib.h>

static long kill_at_each(const struct scenario *scenario)
{
    long at = 1;

    while (crash_run(scenario, KIT_STEP, KIT_KILL_BEFORE, at))
        at++;
    return at - 1;
}

static void killed_at_every_step(void)
{
    long points = 0;

    for (size_t i = 0; i < SCENARIOS; i++)
        points += kill_at_each(&scenarios[i]);
    for (size_t i = 0; i < STEP_SCENARIOS; i++)
        points += kill_at_each(&step_scenarios[i]);
    print_message("# killed at %ld points, at %d steps so far\n", points, steps_met()->count);
    assert_true(points > 50);
}

static void mapped(void **state)
{
    (void)state;
    assert_int_equal(setenv("KIT_MAPPED", "1", 1), 0);
    killed_at_every_step();
}

static void guarded(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("KIT_MAPPED"), 0);
    killed_at_every_step();
}

static void none_left_out(void **state)
{
    (void)state;
    steps_all_met(" ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mapped), cmocka_unit_test(guarded),
                                       cmocka_unit_test(none_left_out)};

    (void)steps_met();
    return KIT_RUN(tests);
}
