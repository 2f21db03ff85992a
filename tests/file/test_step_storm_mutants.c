/* test_step_storm_mutants.c - the storm's referee notices what is done wrong on purpose. */
#include "step_storm.h"

#define PATIENCE_MS 20000

static void expect_breach(enum storm_mutant mutant)
{
    struct storm_plan plan = {
        .mapped = true, .ttl_ms = 60000, .for_ms = PATIENCE_MS, .mutant = mutant};
    struct step_storm *storm = step_storm_run(&plan);

    print_message("# %ld holds: %s\n", atomic_load(&storm->holds), storm->text);
    assert_true(atomic_load(&storm->broken));
    step_storm_free(storm);
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

static void not_frozen(void **state)
{
    (void)state;
    expect_breach(MUTANT_NOT_FROZEN);
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
        cmocka_unit_test(not_frozen),  cmocka_unit_test(no_byte)};

    return KIT_RUN(tests);
}
