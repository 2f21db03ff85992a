/* wait.c - how a wait for a lock goes on after each answer. */
#include "core/wait.h"

#define NS_PER_MS      1000000LL
#define PAUSE_FIRST_MS 100   /* after the first attempt that failed; then doubled */
#define PAUSE_MOST_MS  2000  /* and no longer than this */
#define QUEUE_FIRST_MS 100   /* the same within an attempt: the place in the queue lasts seconds */
#define QUEUE_MOST_MS  400   /* only, and is to be kept */
#define ROUND_FIRST_MS 12    /* between two rounds of one who has no place: with Redlock, so that */
#define ROUND_MOST_MS  192   /* clients which split the nodes between them do not do so again */
#define LOOK_MS        2000  /* how often a quarantine is looked at: an operator may end it */
#define LATE_MS        50    /* how long after the end of a quarantine the last of a crowd asks */
#define CALM_MS        10000 /* a store that kept us this long had answered in between */
#define DAY_MS         86400000LL

bool hf__wait_may_pass(enum hf_status status)
{
    return status == HF_UNREACHABLE || status == HF_UNKNOWN || status == HF_QUARANTINE;
}

void hf__wait_init(struct hf__wait *wait, int64_t until_ns)
{
    *wait = (struct hf__wait){
        .until_ns = until_ns,
        .backoff = {.first_ns = PAUSE_FIRST_MS * NS_PER_MS, .most_ns = PAUSE_MOST_MS * NS_PER_MS}};
}

void hf__wait_queue_init(struct hf__wait_queue *queue, int64_t wait_until_ns)
{
    *queue = (struct hf__wait_queue){
        .wait_until_ns = wait_until_ns,
        .backoff = {.first_ns = QUEUE_FIRST_MS * NS_PER_MS, .most_ns = QUEUE_MOST_MS * NS_PER_MS}};
}

void hf__wait_rounds_init(struct hf__wait_rounds *rounds, int64_t wait_until_ns)
{
    *rounds = (struct hf__wait_rounds){
        .wait_until_ns = wait_until_ns,
        .backoff = {.first_ns = ROUND_FIRST_MS * NS_PER_MS, .most_ns = ROUND_MOST_MS * NS_PER_MS}};
}

/* now_ns + ms, held at until_ns. */
static int64_t after_ms(int64_t now_ns, int64_t ms, int64_t until_ns)
{
    return ms < (until_ns - now_ns) / NS_PER_MS ? now_ns + ms * NS_PER_MS : until_ns;
}

/* When the last of a crowd should ask: a little after the end, and not all at once. */
static int64_t quarantine_ms(int64_t retry_after_ms, uint32_t dice)
{
    int64_t end_ms = retry_after_ms < 0 ? 0 : retry_after_ms > DAY_MS ? DAY_MS : retry_after_ms;

    return end_ms + 1 + (int64_t)dice % LATE_MS;
}

static struct hf__wait_step step(enum hf__wait_next next, int64_t at_ns, int64_t until_ns)
{
    return (struct hf__wait_step){.next = next, .until_ns = at_ns < until_ns ? at_ns : until_ns};
}

struct hf__wait_step hf__wait_answered(struct hf__wait *wait, const struct hf__wait_answer *answer,
                                       int64_t now_ns, uint32_t dice)
{
    int64_t pause_ms;

    if (!hf__wait_may_pass(answer->status) || now_ns >= wait->until_ns)
        return (struct hf__wait_step){.next = HF__WAIT_RETURN};
    if (answer->status == HF_QUARANTINE || now_ns - answer->asked_ns >= CALM_MS * NS_PER_MS)
        hf__backoff_worked(&wait->backoff);
    if (answer->status != HF_QUARANTINE)
        return step(HF__WAIT_PAUSE, hf__backoff_failed(&wait->backoff, now_ns, dice),
                    wait->until_ns);
    /* Right after its end, if that is near; else now and then. */
    if (answer->retry_after_ms > LOOK_MS)
        pause_ms = LOOK_MS / 2 + (int64_t)dice % (LOOK_MS / 2 + 1);
    else
        pause_ms = quarantine_ms(answer->retry_after_ms, dice);
    return step(HF__WAIT_PAUSE, after_ms(now_ns, pause_ms, wait->until_ns), wait->until_ns);
}

bool hf__wait_over(const struct hf__wait_queue *queue, int64_t now_ns)
{
    return now_ns >= queue->wait_until_ns;
}

void hf__wait_worked(struct hf__wait_queue *queue)
{
    hf__backoff_worked(&queue->backoff);
}

struct hf__wait_step hf__wait_unheard(struct hf__wait_queue *queue, int64_t now_ns, uint32_t dice)
{
    return step(HF__WAIT_PAUSE, hf__backoff_failed(&queue->backoff, now_ns, dice),
                queue->wait_until_ns);
}

struct hf__wait_step hf__wait_queued(struct hf__wait_queue *queue,
                                     const struct hf__wait_answer *answer, int64_t now_ns,
                                     uint32_t dice)
{
    const struct hf__wait_step over = {.next = HF__WAIT_RETURN};
    int64_t end_ns;

    if (hf__wait_over(queue, now_ns))
        return over;
    if (answer->status == HF_BUSY) {
        hf__wait_worked(queue);
        return step(HF__WAIT_SLEEP, answer->look_ns > now_ns ? answer->look_ns : now_ns,
                    queue->wait_until_ns);
    }
    if (!hf__wait_may_pass(answer->status) || now_ns >= queue->ours_until_ns ||
        (answer->status == HF_UNKNOWN && !queue->settles))
        return over;
    if (answer->status != HF_QUARANTINE)
        return hf__wait_unheard(queue, now_ns, dice);
    end_ns = after_ms(now_ns, quarantine_ms(answer->retry_after_ms, dice), INT64_MAX);
    if (end_ns >= queue->ours_until_ns)
        return over;
    return step(HF__WAIT_PAUSE, end_ns, queue->wait_until_ns);
}

struct hf__wait_step hf__wait_unqueued(struct hf__wait_rounds *rounds, enum hf_status status,
                                       int64_t now_ns, uint32_t dice)
{
    if (status != HF_BUSY || now_ns >= rounds->wait_until_ns)
        return (struct hf__wait_step){.next = HF__WAIT_RETURN};
    return step(HF__WAIT_PAUSE, hf__backoff_failed(&rounds->backoff, now_ns, dice),
                rounds->wait_until_ns);
}
