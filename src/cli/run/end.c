/* end.c - when the tree is to be ended.
 *
 *     TERM                          KILL            deadline
 *      |<--------- grace ----------->|<-- margin -->|
 *
 * The plan is worked out afresh from the page each time, so a renewal that arrives in time moves
 * everything without a message. Once the ending has begun it is not taken back, whatever the store
 * says later: CMD was told to stop, and KILL comes a grace later or before the deadline. */
#include "cli/run/run.h"

#include "base/base.h"

enum {
    MARGIN_MAX_MS = 250, /* KILL begins this long before the deadline ... */
    MARGIN_PART = 8      /* ... or this part of the ttl */
};

static int64_t kill_limit(const struct run_page *page, int64_t deadline_ns);
static int64_t grace_for(const struct run_page *page, enum run_cause cause);
static int64_t lease_term(const struct run_page *page, int64_t deadline_ns);

const char *const run_on_loss_words[] = {"term", "kill", "warn", NULL};

int64_t run_margin_ns(int64_t ttl_ms)
{
    int64_t part_ns = ttl_ms * HF__NS_PER_MS / MARGIN_PART;
    int64_t most_ns = MARGIN_MAX_MS * HF__NS_PER_MS;

    return part_ns < most_ns ? part_ns : most_ns;
}

void run_page_init(struct run_page *page, const struct run_options *options)
{
    page->grace_ns = options->grace_ms * HF__NS_PER_MS;
    page->margin_ns = run_margin_ns(options->take.ttl_ms);
    page->on_loss = (enum run_on_loss)options->on_loss;
    page->stop_at_ns = HF_NEVER;
    if (options->max_runtime_ms > 0)
        page->stop_at_ns = hf__time_add(hf__now_ns(), hf__ms_to_ns(options->max_runtime_ms));
    atomic_store(&page->deadline_ns, HF_NEVER);
    atomic_store(&page->order_ns, HF_NEVER);
}

struct run_plan run_plan_of(const struct run_page *page)
{
    int64_t deadline_ns = atomic_load(&page->deadline_ns);
    int64_t began_ns = atomic_load(&page->began_ns);
    struct run_plan plan = {.term_ns = began_ns,
                            .cause = (enum run_cause)atomic_load(&page->cause)};

    if (began_ns == 0) {
        int64_t order_ns;

        plan.term_ns = lease_term(page, deadline_ns);
        plan.cause = RUN_LOST;
        order_ns = atomic_load(&page->order_ns);
        if (page->stop_at_ns < plan.term_ns) {
            plan.term_ns = page->stop_at_ns;
            plan.cause = RUN_MAX_RUNTIME;
        }
        if (order_ns < plan.term_ns) {
            plan.term_ns = order_ns;
            plan.cause = (enum run_cause)atomic_load(&page->order_cause);
        }
    }
    plan.kill_ns = hf__time_add(plan.term_ns, grace_for(page, plan.cause));
    if (kill_limit(page, deadline_ns) < plan.kill_ns)
        plan.kill_ns = kill_limit(page, deadline_ns);
    return plan;
}

void run_page_order(struct run_page *page, enum run_cause cause)
{
    if (atomic_load(&page->order_ns) != HF_NEVER)
        return;
    atomic_store(&page->order_cause, cause);
    atomic_store(&page->order_ns, hf__now_ns());
}

bool run_page_begin(struct run_page *page, const struct run_plan *plan, int64_t now_ns)
{
    int64_t not_yet = 0;

    if (!atomic_compare_exchange_strong(&page->began_ns, &not_yet, now_ns))
        return false;
    atomic_store(&page->cause, plan->cause);
    return true;
}

/* The clock is read before the leases are asked, so that the sum is never too late. */
void run_page_publish(struct run_page *page, struct hf_lease *const *leases, size_t count)
{
    int64_t now_ns = hf__now_ns();
    int64_t left_ms = hf_all_remaining_ms(leases, count);

    if (left_ms > 0)
        atomic_store(&page->deadline_ns, now_ns + left_ms * HF__NS_PER_MS);
    else if (now_ns < atomic_load(&page->deadline_ns))
        atomic_store(&page->deadline_ns, now_ns);
}

enum run_start run_page_decide(struct run_page *page, int64_t now_ns, bool about_to)
{
    int64_t deadline_ns = atomic_load(&page->deadline_ns);
    bool too_late = now_ns >= deadline_ns || now_ns >= lease_term(page, deadline_ns);
    int open = RUN_START_OPEN;

    if (too_late || about_to)
        atomic_compare_exchange_strong(&page->start, &open,
                                       too_late ? RUN_START_REFUSED : RUN_STARTED);
    return (enum run_start)atomic_load(&page->start);
}

/* The latest moment for KILL, whatever grace was promised. */
static int64_t kill_limit(const struct run_page *page, int64_t deadline_ns)
{
    if (deadline_ns == HF_NEVER || page->on_loss == RUN_LOSS_WARN)
        return HF_NEVER;
    return deadline_ns - page->margin_ns;
}

static int64_t grace_for(const struct run_page *page, enum run_cause cause)
{
    return cause == RUN_LOST && page->on_loss == RUN_LOSS_KILL ? 0 : page->grace_ns;
}

/* When the lease itself asks for TERM, if it is not renewed. */
static int64_t lease_term(const struct run_page *page, int64_t deadline_ns)
{
    int64_t limit_ns = kill_limit(page, deadline_ns);

    if (limit_ns == HF_NEVER)
        return HF_NEVER;
    return limit_ns - grace_for(page, RUN_LOST);
}
