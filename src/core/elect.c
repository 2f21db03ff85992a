/* elect.c - what a candidate does when its term is over. */
#include "core/elect.h"

/* A pause is drawn from the upper half of its bound, so the first is 1 s at least. */
static const int64_t FIRST_PAUSE_NS = 2000000000LL;
static const int64_t LONGEST_PAUSE_NS = 60000000000LL;
static const int64_t SHORT_TERM_NS = 60000000000LL;

static bool stands_again(enum hf__elect_restart restart, enum hf__term_end end);

void hf__elect_init(struct hf__elect *elect, enum hf__elect_restart restart)
{
    *elect = (struct hf__elect){
        .restart = restart, .backoff = {.first_ns = FIRST_PAUSE_NS, .most_ns = LONGEST_PAUSE_NS}};
}

struct hf__elect_step hf__elect_term_over(struct hf__elect *elect, const struct hf__term *term,
                                          uint32_t dice)
{
    struct hf__elect_step step = {.again = stands_again(elect->restart, term->end),
                                  .not_before_ns = term->ended_ns};
    if (term->ended_ns - term->began_ns < SHORT_TERM_NS)
        step.not_before_ns = hf__backoff_failed(&elect->backoff, term->ended_ns, dice);
    else
        hf__backoff_worked(&elect->backoff);
    return step;
}

static bool stands_again(enum hf__elect_restart restart, enum hf__term_end end)
{
    switch (end) {
    case HF__TERM_TOLD:
        return false;
    case HF__TERM_LOST:
        return true;
    case HF__TERM_DONE:
        return restart == HF__RESTART_ALWAYS;
    case HF__TERM_FAILED:
        return restart != HF__RESTART_NO;
    }
    return false;
}
