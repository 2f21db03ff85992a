/* test_crash_points.c - kill -9 at every call the store makes, before and after it takes effect.
 *
 * Each scenario is run once per call: a child is killed at the n-th one, for all n.
 * run: late asan */
#include "crash.h"

static void killed_at_every(enum kit_action action)
{
    for (size_t i = 0; i < SCENARIOS; i++) {
        long at = 1;

        while (crash_run(&scenarios[i], KIT_ALL, action, at))
            at++;
        print_message("# %s: %ld calls\n", scenarios[i].name, at - 1);
        assert_true(at > 1);
    }
}

static void killed_before(void **state)
{
    (void)state;
    killed_at_every(KIT_KILL_BEFORE);
}

static void killed_after(void **state)
{
    (void)state;
    killed_at_every(KIT_KILL_AFTER);
}

/* A write of more than a slot can be cut off in the middle: the new file's image, a new page, of
 * locks or of a client. Only those: what lies within a slot is written whole. */
static void killed_amid(void **state)
{
    (void)state;
    (void)crash_run(&scenarios[SCENARIO_CREATE], KIT_PWRITE, KIT_TORN,
                    1); /* the floor's line, never renamed */
    for (size_t i = 0; i < SCENARIOS; i++) {
        long at = 1;

        while (crash_run(&scenarios[i], KIT_PAGES, KIT_TORN, at))
            at++;
        if (i == SCENARIO_CREATE)
            assert_int_equal(at - 1, 1); /* the image */
        if (i == SCENARIO_SPLIT)
            assert_int_equal(at - 1, 2); /* the client's page, and that of the split */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_before),
                                       cmocka_unit_test(killed_after),
                                       cmocka_unit_test(killed_amid)};

    return KIT_RUN(tests);
}
