/* worker.c - a worker: takes a lock, counts, gives it back. */
#include "torture/torture.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TROUBLE_PAUSE_MS = 20,
    DAWDLE_MAX_MS = 12,
    SHORT_WAIT_MS = 200,
    LONG_WAIT_MS = 30000,
    REOPEN_ODDS = 40 /* the store is opened anew once in this many holds, on average */
};

static void renewed(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct torture_worker *me = data;
    int lock = atomic_load(&me->lock);

    (void)remaining_ms;
    if (lock >= 0 && atomic_load(&me->token) == hf_lease_token(lease))
        (void)torture_publish(me, lease, lock);
}

/* One hold: raise the fence, read both counters, dawdle, write both. A frozen worker writes late,
 * as a real one would. */
static void count(struct torture_referee *referee, struct torture_worker *me,
                  struct hf_lease *lease, int lock, uint64_t *rng)
{
    struct torture_ledger *ledger = &referee->ledgers[lock];
    uint64_t token = hf_lease_token(lease);
    uint64_t fenced = 0, plain;
    bool admitted;

    torture_section_enter(referee, me);
    admitted = token >= ledger->mark;
    if (admitted) {
        ledger->mark = token;
        fenced = ledger->fenced;
    }
    plain = ledger->plain;
    torture_section_leave(referee, me);

    hf__sleep_ns(torture_below(rng, DAWDLE_MAX_MS) * HF__NS_PER_MS);

    torture_section_enter(referee, me);
    if (admitted && token >= ledger->mark) {
        ledger->fenced = fenced + 1;
        ledger->fenced_writes++;
    } else {
        atomic_fetch_add(&referee->stale, 1);
    }
    ledger->plain = plain + 1;
    ledger->plain_writes++;
    torture_section_leave(referee, me);
}

static void one_hold(struct torture_referee *referee, struct hf_store *store,
                     struct torture_worker *me, uint64_t *rng)
{
    static const int64_t waits[] = {0, SHORT_WAIT_MS, LONG_WAIT_MS, LONG_WAIT_MS};
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = referee->plan->ttl_ms,
                                         .wait_ms = waits[torture_below(rng, 4)],
                                         .cancel_fd = TORTURE_OVER_FD,
                                         .no_keeper = torture_below(rng, 2) == 0,
                                         .on_renewed = renewed,
                                         .data = me};
    int lock = (int)torture_below(rng, TORTURE_LOCKS);
    char name[TORTURE_NAME_SIZE];
    struct hf_lease *lease;
    struct hf_error err = {0};
    int64_t asked_ns = hf__now_ns();
    enum hf_status status;

    status = hf_acquire(store, torture_name(referee->plan, lock, name), &options, &lease, &err);
    if (status != HF_CANCELLED) /* it is over */
        torture_note(referee, status, &err);
    if (status == HF_OK) {
        if (torture_publish(me, lease, lock)) {
            torture_judge(referee, me, lease, lock, asked_ns);
            count(referee, me, lease, lock, rng);
        }
        atomic_store(&me->lock, -1);
        torture_note(referee, hf_release(lease, &err), &err);
    } else if (status != HF_BUSY && status != HF_CANCELLED) {
        hf__sleep_ns(TROUBLE_PAUSE_MS * HF__NS_PER_MS);
    }
}

static struct hf_store *open_store(struct torture_referee *referee, const struct torture_worker *me)
{
    const struct torture_plan *plan = referee->plan;
    bool other = plan->other_url != NULL && (me - referee->workers) % 2 != 0;
    struct hf_store *store;
    struct hf_error err = {0};
    enum hf_status status = hf_open(other ? plan->other_url : plan->url, &store, &err);

    if (status == HF_OK)
        return store;
    torture_note(referee, status, &err);
    hf__sleep_ns(TROUBLE_PAUSE_MS * HF__NS_PER_MS);
    return NULL;
}

void torture_work(struct torture_referee *referee, struct torture_worker *me, uint64_t stream)
{
    struct hf_store *store = NULL;

    if (referee->plan->every_ms[TORTURE_CUT] > 0)
        torture_cut_start(me);
    while (!atomic_load(&referee->over)) {
        if (store == NULL)
            store = open_store(referee, me);
        if (store == NULL)
            continue;
        one_hold(referee, store, me, &stream);
        if (torture_below(&stream, REOPEN_ODDS) == 0) {
            hf_close(store);
            store = NULL;
        }
        (void)fflush(stdout);
    }
    hf_close(store);
    _exit(0);
}
