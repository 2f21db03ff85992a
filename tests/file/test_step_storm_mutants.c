/* test_step_storm_mutants.c - the storm's referee notices what is done wrong on purpose. */
#include "step_storm.h"

/* Pages split while a store is small: many short storms, each in a store of its own, see more of
 * that than a long one. */
#define ROUND_MS 1000
#define ROUNDS   30

static void expect_breach(enum storm_mutant mutant)
{
    struct storm_plan plan = {
        .mapped = true, .ttl_ms = 60000, .for_ms = ROUND_MS, .mutant = mutant};
    bool broken = false;

    for (int i = 0; i < ROUNDS && !broken; i++) {
        struct step_storm *storm = step_storm_run(&plan);

        broken = atomic_load(&storm->broken);
        if (broken)
            print_message("# round %d, %ld holds: %s\n", i + 1, atomic_load(&storm->holds),
                          storm->text);
        step_storm_free(storm);
    }
    assert_true(broken);
}

static void plain_store(void **state)
{
    (void)state;
    expect_breach(MUTANT_STORE);
}

static void token_alone(void **state)
{
    (void)state;
    expect_breach(MUTANT_TOKEN_ALONE);
}

static void not_waited(void **state)
{
    (void)state;
    expect_breach(MUTANT_NOT_WAITED);
}

static void renewal_drops_waited(void **state)
{
    (void)state;
    expect_breach(MUTANT_RENEW_DROPS);
}

static void not_marked(void **state)
{
    (void)state;
    expect_breach(MUTANT_NOT_MARKED);
}

static void no_byte(void **state)
{
    (void)state;
    expect_breach(MUTANT_NO_BYTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_store), cmocka_unit_test(token_alone),
        cmocka_unit_test(not_waited),  cmocka_unit_test(renewal_drops_waited),
        cmocka_unit_test(not_marked),  cmocka_unit_test(no_byte)};

    return KIT_RUN(tests);
}
