/* test_kill_storm.c - kill -9 of holders, waiters and releasers at random instants.
 * run: late asan, run: slow */
#include "../support/storm.h"

#include <stdio.h>

#define BOX_S 6 /* as many rounds as fit, if the machine is slow */

/* ttl 60 s: only crash release can free a lock in time. */
static void killed_anywhere(void **state)
{
    struct storm *storm = storm_new(kit_dir(), 60000);
    struct kit_rng rng = kit_rng(0);
    int64_t until_ns = hf__now_ns() + kit_rounds(BOX_S) * HF__NS_PER_S;
    long rounds = kit_rounds(1500);
    uint64_t stream = 1;
    long killed = 0;

    (void)state;
    if (until_ns < hf__now_ns() + BOX_S * HF__NS_PER_S)
        until_ns = hf__now_ns() + BOX_S * HF__NS_PER_S;
    for (int i = 0; i < STORM_WORKERS; i++)
        storm_start(storm, i, stream++);
    while (killed < rounds && !atomic_load(&storm->broken) && hf__now_ns() < until_ns) {
        int victim = (int)kit_below(&rng, STORM_WORKERS);

        hf__sleep_ns((int64_t)kit_below(&rng, 3000000));
        storm_kill(storm, victim);
        storm_start(storm, victim, stream++);
        killed++;
    }
    for (int i = 0; i < STORM_WORKERS; i++)
        storm_kill(storm, i);
    print_message("# %ld killed, %ld holds, %ld busy\n", killed, atomic_load(&storm->holds),
                  atomic_load(&storm->waits));
    storm_check(storm);
    assert_true(atomic_load(&storm->holds) > 100);
    storm_free(storm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_anywhere)};

    return KIT_RUN(tests);
}
