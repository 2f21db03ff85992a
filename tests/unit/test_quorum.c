/* test_quorum.c - majorities of nodes, and the token that follows from their answers. */
#include "../support/check.h"
#include "core/lease.h"
#include "core/quorum.h"
#include "core/token.h"

#include <string.h>

#define MS  1000000LL
#define TTL 1000u

static struct hf__quorum five(uint64_t guess)
{
    struct hf__quorum vote;

    hf__quorum_start(&vote, 5, TTL, guess, 0, INT64_MAX);
    return vote;
}

/* A grant that took the guess, after a counter of prev. */
static enum hf__quorum_action grant(struct hf__quorum *vote, unsigned node, uint64_t prev)
{
    enum hf__quorum_action action =
        hf__quorum_on_grant(vote, node, prev, vote->guess > prev, 90, 1 * MS);

    assert_true(hf__quorum_consistent(vote));
    return action;
}

static enum hf__quorum_action no(struct hf__quorum *vote, unsigned node, enum hf__quorum_no why)
{
    enum hf__quorum_action action = hf__quorum_on_no(vote, node, why, 1 * MS);

    assert_true(hf__quorum_consistent(vote));
    return action;
}

static void majority_is_of_the_configured_nodes(void **state)
{
    (void)state;
    assert_int_equal(hf__quorum_majority(3), 2);
    assert_int_equal(hf__quorum_majority(5), 3);
    assert_int_equal(hf__quorum_majority(7), 4);
    assert_int_equal(hf__quorum_majority(15), 8);
}

static void three_of_five_that_applied_are_enough(void **state)
{
    struct hf__quorum vote = five(100);

    (void)state;
    assert_int_equal(grant(&vote, 4, 0), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 0, 7), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 2, 99), HF__QUORUM_DONE);
    assert_int_equal(vote.token, 100);
    /* The laggards change nothing. */
    assert_int_equal(grant(&vote, 1, 500), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 3, HF__NO_HELD), HF__QUORUM_WAIT);
    assert_int_equal(vote.phase, HF__PHASE_DONE);
    assert_int_equal(vote.token, 100);
}

static void an_answer_counts_once(void **state)
{
    struct hf__quorum vote = five(100);

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(grant(&vote, 1, 0), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 1, HF__NO_HELD), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 2, 0), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 3, 0), HF__QUORUM_DONE);
}

static void guess_not_applied_makes_a_second_round(void **state)
{
    struct hf__quorum vote = five(100);

    (void)state;
    assert_int_equal(grant(&vote, 0, 0), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 1, 300), HF__QUORUM_WAIT);
    assert_int_equal(grant(&vote, 2, 200), HF__QUORUM_WAIT);
    /* Two more could still make it three of five. */
    assert_int_equal(grant(&vote, 3, 100), HF__QUORUM_RAISE);
    assert_int_equal(vote.token, 301);
    for (unsigned i = 0; i < 4; i++)
        assert_true(hf__quorum_raises(&vote, i));
    assert_false(hf__quorum_raises(&vote, 4));
    /* Too late: its counter may be above the token. */
    assert_int_equal(grant(&vote, 4, 900), HF__QUORUM_WAIT);
    assert_false(hf__quorum_raises(&vote, 4));
    assert_int_equal(hf__quorum_on_raise(&vote, 4, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_raise(&vote, 0, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_raise(&vote, 0, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_raise(&vote, 3, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_raise(&vote, 4, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_raise(&vote, 2, MS), HF__QUORUM_DONE);
    assert_int_equal(vote.token, 301);
}

static void token_is_above_clocks_and_an_applied_guess(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start(&vote, 3, TTL, 100, 0, INT64_MAX);
    (void)hf__quorum_on_grant(&vote, 0, 5, true, 10, MS);
    (void)hf__quorum_on_grant(&vote, 1, 5, false, 10, MS);
    assert_int_equal(no(&vote, 2, HF__NO_ANSWER), HF__QUORUM_RAISE);
    assert_int_equal(vote.token, 101);

    hf__quorum_start(&vote, 3, TTL, 100, 0, INT64_MAX);
    (void)hf__quorum_on_grant(&vote, 0, 5, false, 10, MS);
    assert_int_equal(hf__quorum_on_grant(&vote, 1, 0, false, 70, MS), HF__QUORUM_RAISE);
    assert_int_equal(vote.token, 71); /* the guess was applied nowhere */
}

#define S_US 1000000LL

/* A grant without the guess, by a node whose clock says clock_s seconds. */
static enum hf__quorum_action grant_at(struct hf__quorum *vote, unsigned node, uint64_t clock_s)
{
    enum hf__quorum_action action =
        hf__quorum_on_grant(vote, node, 0, false, clock_s * (uint64_t)S_US, 1 * MS);

    assert_true(hf__quorum_consistent(vote));
    return action;
}

/* A clock a minute ahead must neither move the tokens nor keep the others from agreeing, wherever
 * it stands and whenever it answers. */
static void a_clock_of_its_own_has_no_vote(void **state)
{
    (void)state;
    for (unsigned bad = 0; bad < 5; bad++)
        for (unsigned first = 0; first < 5; first++) {
            struct hf__quorum vote;
            unsigned answers = 0;

            hf__quorum_start(&vote, 5, TTL, 1, 0, 20 * S_US);
            for (unsigned n = 0; n < 5 && vote.phase == HF__PHASE_GRANT; n++, answers++) {
                unsigned node = (first + n) % 5;

                (void)grant_at(&vote, node, node == bad ? 1060 : 1000 + node);
            }
            assert_int_equal(vote.phase, HF__PHASE_RAISE);
            assert_true(vote.token < 1010 * (uint64_t)S_US);
            assert_false(hf__quorum_raises(&vote, bad));
            if (vote.node[bad].state == HF__NODE_NO)
                assert_int_equal(vote.node[bad].no, HF__NO_CLOCK);
            for (unsigned node = 0; node < 5; node++)
                (void)hf__quorum_on_raise(&vote, node, MS);
            assert_int_equal(vote.phase, HF__PHASE_DONE);
        }
}

/* Without a majority of clocks that are close to each other there is no token. */
static void clocks_that_do_not_agree_make_no_token(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start(&vote, 5, TTL, 1, 0, 20 * S_US);
    for (unsigned node = 0; node < 4; node++)
        assert_int_equal(grant_at(&vote, node, 1000 + 30 * (node / 2)), HF__QUORUM_WAIT);
    assert_int_equal(grant_at(&vote, 4, 1060), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_CLOCKS);
    /* With another node held elsewhere it is busy: that passes. */
    hf__quorum_start(&vote, 3, TTL, 1, 0, 20 * S_US);
    assert_int_equal(grant_at(&vote, 0, 1000), HF__QUORUM_WAIT);
    assert_int_equal(grant_at(&vote, 1, 1060), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 2, HF__NO_HELD), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_HELD);
    /* Silence may have agreed with one of them. */
    hf__quorum_start(&vote, 3, TTL, 1, 0, 20 * S_US);
    assert_int_equal(grant_at(&vote, 0, 1000), HF__QUORUM_WAIT);
    assert_int_equal(grant_at(&vote, 1, 1060), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 2, HF__NO_ANSWER), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_UNKNOWN);
}

static void no_token_above_the_last(void **state)
{
    struct hf__quorum vote = five(1);

    (void)state;
    (void)grant(&vote, 0, HF__TOKEN_MAX);
    (void)grant(&vote, 1, HF__TOKEN_MAX);
    assert_int_equal(grant(&vote, 2, HF__TOKEN_MAX), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_TOKENS);
}

static void a_refused_raise_fails_the_attempt(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start(&vote, 3, TTL, 100, 0, INT64_MAX);
    (void)grant(&vote, 0, 200);
    assert_int_equal(grant(&vote, 1, 200), HF__QUORUM_RAISE);
    assert_int_equal(hf__quorum_on_raise(&vote, 0, MS), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 1, HF__NO_HELD), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_RAISED);
    assert_int_equal(hf__quorum_on_raise(&vote, 1, MS), HF__QUORUM_WAIT);
    assert_int_equal(vote.phase, HF__PHASE_FAILED);
}

/* What becomes of an acquire to which five nodes give their answers, one after the other in an
 * order that differs with first and step. */
static enum hf__quorum_why why_of(const char *words, unsigned first, unsigned step)
{
    static const struct {
        char word;
        enum hf__quorum_no no;
    } noes[] = {{'H', HF__NO_HELD},
                {'Q', HF__NO_QUARANTINE},
                {'U', HF__NO_UNREACHABLE},
                {'-', HF__NO_ANSWER}};
    struct hf__quorum vote = five(100);
    enum hf__quorum_action last = HF__QUORUM_WAIT;

    for (unsigned n = 0; n < 5 && last == HF__QUORUM_WAIT; n++) {
        unsigned node = (first + n * step) % 5;

        if (words[node] == 'G')
            last = grant(&vote, node, 0);
        for (size_t i = 0; i < COUNT(noes); i++)
            if (words[node] == noes[i].word)
                last = no(&vote, node, noes[i].no);
    }
    assert_int_equal(last, HF__QUORUM_FAILED);
    return vote.why;
}

static void who_is_to_blame(void **state)
{
    static const struct {
        /* What five nodes say: Granted, Held, Quarantine, Unreachable, nothing (-). */
        const char *words;
        enum hf__quorum_why why;
    } rows[] = {
        {"HHHHH", HF__WHY_HELD},
        {"GGHHH", HF__WHY_HELD},
        {"HHHUU", HF__WHY_HELD},
        {"GHHUU", HF__WHY_HELD},
        {"GGHUU", HF__WHY_HELD}, /* split: retry */
        {"HUUUU", HF__WHY_UNREACHABLE},
        {"HHUUU", HF__WHY_UNREACHABLE},
        {"GGUUU", HF__WHY_UNREACHABLE},
        {"UUUUU", HF__WHY_UNREACHABLE},
        {"-UUUU", HF__WHY_UNREACHABLE},
        {"G-UUU", HF__WHY_UNREACHABLE},
        /* Silent nodes that cannot have made a majority, and such that can. */
        {"HHH--", HF__WHY_HELD},
        {"GHHH-", HF__WHY_HELD},
        {"HH-U-", HF__WHY_HELD},
        {"GHHU-", HF__WHY_HELD},
        {"HH---", HF__WHY_UNKNOWN},
        {"GGHU-", HF__WHY_UNKNOWN},
        {"GGHH-", HF__WHY_UNKNOWN},
        {"G--HH", HF__WHY_UNKNOWN},
        {"GGUU-", HF__WHY_UNKNOWN},
        {"-----", HF__WHY_UNKNOWN},
        {"GGQQQ", HF__WHY_QUARANTINE},
        {"HHQQQ", HF__WHY_QUARANTINE},
        {"GQQ-U", HF__WHY_QUARANTINE},
        {"HHHQQ", HF__WHY_HELD},
        {"GQ---", HF__WHY_UNKNOWN},
        {"QUUUU", HF__WHY_UNREACHABLE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned first = 0; first < 5; first++)
            for (unsigned step = 1; step < 5; step++)
                check_row(why_of(rows[i].words, first, step) == rows[i].why, i);
}

/* In the second round only the nodes that were asked to raise matter. */
static void a_raise_without_an_answer_is_unknown(void **state)
{
    struct hf__quorum vote = five(100);

    (void)state;
    (void)grant(&vote, 0, 200);
    (void)grant(&vote, 1, 200);
    (void)no(&vote, 3, HF__NO_ANSWER);
    (void)no(&vote, 4, HF__NO_ANSWER);
    assert_int_equal(grant(&vote, 2, 200), HF__QUORUM_RAISE);
    assert_int_equal(no(&vote, 0, HF__NO_ANSWER), HF__QUORUM_WAIT);
    (void)hf__quorum_on_raise(&vote, 1, MS);
    assert_int_equal(hf__quorum_on_raise(&vote, 2, MS), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_UNKNOWN);

    vote = five(100);
    (void)grant(&vote, 0, 200);
    (void)grant(&vote, 1, 200);
    (void)no(&vote, 3, HF__NO_ANSWER);
    (void)no(&vote, 4, HF__NO_ANSWER);
    assert_int_equal(grant(&vote, 2, 200), HF__QUORUM_RAISE);
    (void)no(&vote, 0, HF__NO_ANSWER);
    (void)no(&vote, 1, HF__NO_HELD);
    assert_int_equal(hf__quorum_on_raise(&vote, 2, MS), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_RAISED); /* two raises make no majority */
}

static void votes_after_the_end_of_the_lease_are_worth_nothing(void **state)
{
    struct hf__quorum vote = five(100);
    int64_t deadline = hf__deadline_ns(0, TTL);

    (void)state;
    (void)hf__quorum_on_grant(&vote, 0, 0, true, 0, 0);
    (void)hf__quorum_on_grant(&vote, 1, 0, true, 0, 0);
    assert_int_equal(hf__quorum_on_grant(&vote, 2, 0, true, 0, deadline), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_LATE);
    vote = five(100);
    (void)hf__quorum_on_grant(&vote, 0, 0, true, 0, 0);
    (void)hf__quorum_on_grant(&vote, 1, 0, true, 0, 0);
    assert_int_equal(hf__quorum_on_grant(&vote, 2, 0, true, 0, deadline - 1), HF__QUORUM_DONE);
}

static void renewal_needs_a_majority_of_either_kind(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start_extend(&vote, 5, TTL, 0);
    (void)hf__quorum_on_yes(&vote, 0, true, MS);
    (void)no(&vote, 1, HF__NO_HELD);
    (void)hf__quorum_on_yes(&vote, 2, true, MS);
    (void)no(&vote, 3, HF__NO_HELD);
    assert_int_equal(hf__quorum_on_yes(&vote, 4, true, MS), HF__QUORUM_DONE);
    assert_true(hf__quorum_consistent(&vote));

    /* Two that lost it and one that is silent: nobody may call that lost. */
    hf__quorum_start_extend(&vote, 5, TTL, 0);
    (void)no(&vote, 0, HF__NO_HELD);
    (void)no(&vote, 1, HF__NO_HELD);
    (void)no(&vote, 2, HF__NO_ANSWER);
    (void)no(&vote, 3, HF__NO_ANSWER);
    assert_int_equal(no(&vote, 4, HF__NO_ANSWER), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_UNKNOWN);
    /* Nor one that cannot be reached, as long as two others may say so. */
    hf__quorum_start_extend(&vote, 5, TTL, 0);
    (void)no(&vote, 0, HF__NO_UNREACHABLE);
    (void)no(&vote, 1, HF__NO_HELD);
    assert_int_equal(no(&vote, 2, HF__NO_HELD), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 3, HF__NO_HELD), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_HELD);
    hf__quorum_start_extend(&vote, 5, TTL, 0);
    (void)no(&vote, 0, HF__NO_HELD);
    (void)no(&vote, 1, HF__NO_HELD);
    assert_int_equal(no(&vote, 2, HF__NO_HELD), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_HELD);
}

/* Nodes that granted late hold the key and do not know the token. */
static void a_majority_knows_the_token(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start_extend(&vote, 5, TTL, 0);
    assert_int_equal(hf__quorum_on_yes(&vote, 0, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_yes(&vote, 1, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_yes(&vote, 2, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_yes(&vote, 3, true, MS), HF__QUORUM_DONE);

    hf__quorum_start_extend(&vote, 3, TTL, 0);
    assert_int_equal(hf__quorum_on_yes(&vote, 0, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_yes(&vote, 1, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(no(&vote, 2, HF__NO_UNREACHABLE), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_UNKNOWN);

    hf__quorum_start_extend(&vote, 3, TTL, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(hf__quorum_on_yes(&vote, i, false, MS), HF__QUORUM_WAIT);
    assert_int_equal(hf__quorum_on_yes(&vote, 2, false, MS), HF__QUORUM_FAILED);
    assert_int_equal(vote.why, HF__WHY_HELD); /* by another token */
}

static void release_is_never_too_late(void **state)
{
    struct hf__quorum vote;

    (void)state;
    hf__quorum_start_extend(&vote, 3, 0, 0);
    (void)hf__quorum_on_yes(&vote, 0, true, INT64_MAX);
    assert_int_equal(hf__quorum_on_yes(&vote, 1, true, INT64_MAX), HF__QUORUM_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(majority_is_of_the_configured_nodes),
        cmocka_unit_test(three_of_five_that_applied_are_enough),
        cmocka_unit_test(an_answer_counts_once),
        cmocka_unit_test(guess_not_applied_makes_a_second_round),
        cmocka_unit_test(token_is_above_clocks_and_an_applied_guess),
        cmocka_unit_test(a_clock_of_its_own_has_no_vote),
        cmocka_unit_test(clocks_that_do_not_agree_make_no_token),
        cmocka_unit_test(no_token_above_the_last),
        cmocka_unit_test(a_refused_raise_fails_the_attempt),
        cmocka_unit_test(who_is_to_blame),
        cmocka_unit_test(a_raise_without_an_answer_is_unknown),
        cmocka_unit_test(votes_after_the_end_of_the_lease_are_worth_nothing),
        cmocka_unit_test(renewal_needs_a_majority_of_either_kind),
        cmocka_unit_test(a_majority_knows_the_token),
        cmocka_unit_test(release_is_never_too_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
