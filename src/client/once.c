/* once.c - the turns of hf_once_*: read the record, take the lock, read it again, write that it
 * runs; and in the end what became of it.
 *
 * Whatever a turn finds, the record decides; the lock only keeps two from deciding at the same
 * time. A waiter stays in line: one that left could not take over from one that crashed. */
#include "client/once.h"

#include "base/patience.h"
#include "client/client.h"

#include <stdio.h>
#include <string.h>

enum { AGAIN_MS = 200 }; /* a pause before the next turn, after one that went wrong */

/* What comes of one step of a turn. */
enum step {
    STEP_ANSWER, /* for the caller: the status, or the outcome */
    STEP_AGAIN   /* another turn */
};

static enum step turn(struct hf_once *once, enum hf_status *status, struct hf_error *err);
static enum hf_status read_first(struct hf_once *once, struct hf_error *err);
static enum step sleep_until(struct hf_once *once, int64_t until_ms, enum hf_status *status,
                             struct hf_error *err);
static enum step under_lock(struct hf_once *once, struct hf_lease *lease, enum hf_status *status,
                            struct hf_error *err);
static bool settle(struct hf_once *once, enum hf__once_next next);

static enum hf_status not_for_children(const struct hf_once *once, struct hf_error *err)
{
    return hf__fail(err, HF_INVALID,
                    "\"%.60s\": a handle of hf_once_open cannot be used by a forked "
                    "child",
                    once->name);
}

/* What the store said with a record that it took, once; or that servers may mean different slots,
 * before that. */
static enum hf_status with_warning(struct hf_once *once, struct hf_error *err)
{
    char edge[HF_ERROR_TEXT_SIZE];
    bool on_edge = hf__once_edge(&once->work, edge, sizeof edge);

    if (!on_edge && (err->text[0] == '\0' || once->warned))
        return hf__ok(err);
    if (!on_edge)
        once->warned = true;
    err->code = HF_OK;
    err->retry_after_ms = 0;
    if (on_edge)
        memcpy(err->text, edge, sizeof err->text);
    return HF_OK;
}

enum hf_status hf_once_begin(struct hf_once *once, struct hf_error *err)
{
    enum hf_status status = HF_OK;
    struct hf_error own;

    if (err == NULL)
        err = &own;
    if (hf__forked(&once->mark))
        return not_for_children(once, err);
    if (once->outcome == HF_ONCE_RUN)
        return hf__fail(err, HF_INVALID, "\"%.60s\": a turn is under way; hf_once_end ends it",
                        once->name);
    (void)hf__ok(err);
    if (once->outcome != HF_ONCE_OPEN)
        return HF_OK;
    while (turn(once, &status, err) == STEP_AGAIN)
        continue;
    hf__once_show(once);
    return status == HF_OK ? with_warning(once, err) : status;
}

static enum step turn(struct hf_once *once, enum hf_status *status, struct hf_error *err)
{
    struct hf_lease *lease;
    enum hf__once_next next;
    int64_t until_ms;

    if ((*status = read_first(once, err)) != HF_OK)
        return STEP_ANSWER;
    next = hf__once_next(&once->work, false, &until_ms);
    if (next == HF__ONCE_SLEEP)
        return sleep_until(once, until_ms, status, err);
    if (settle(once, next))
        return STEP_ANSWER;
    once->options.wait_ms = hf__wait_left_ms(once->until_ns);
    *status = hf_acquire(once->work.store, once->name, &once->options, &lease, err);
    return *status == HF_OK ? under_lock(once, lease, status, err) : STEP_ANSWER;
}

static enum hf_status cancelled(const struct hf_once *once, struct hf_error *err)
{
    return hf__fail_lock(err, HF_CANCELLED, once->name, once->work.store->url,
                         ": cancelled while waiting");
}

/* Before the lock is asked for: what is settled needs no lock. */
static enum hf_status read_first(struct hf_once *once, struct hf_error *err)
{
    const struct hf_open_options waiting = {.cancel_fd = once->options.cancel_fd,
                                            .on_trouble = once->options.on_trouble,
                                            .data = once->options.data};
    enum hf_status status = hf__once_read_waiting(&once->work, once->until_ns, &waiting, err);

    return status == HF_CANCELLED ? cancelled(once, err) : status;
}

static enum hf__waited pause_until(const struct hf_once *once, int64_t deadline_ns,
                                   int64_t until_ns)
{
    const struct hf__patience patience = {
        .deadline_ns = deadline_ns,
        .cancel_fd = once->options.cancel_fd > 0 ? once->options.cancel_fd : -1};

    return hf__patience_pause(&patience, until_ns);
}

/* Until the next attempt is due, or the wait is over. After a failure of our own we try again even
 * if we would not wait for others. */
static enum step sleep_until(struct hf_once *once, int64_t until_ms, enum hf_status *status,
                             struct hf_error *err)
{
    int64_t left_ms = until_ms - once->work.found.now_ms;
    char left[32];

    switch (pause_until(once, once->ran ? HF_NEVER : once->until_ns,
                        hf__time_add(hf__now_ns(), hf__ms_to_ns(left_ms)))) {
    case HF__WAITED_CANCELLED:
        *status = cancelled(once, err);
        return STEP_ANSWER;
    case HF__WAITED_TIMEOUT:
        *status = hf__fail_lock(err, HF_BUSY, once->name, once->work.store->url,
                                " has failed, and the next attempt is due in %s",
                                hf__format_duration(left, sizeof left, left_ms));
        return STEP_ANSWER;
    case HF__WAITED_READY:
        break;
    }
    return STEP_AGAIN;
}

/* True: nothing is left to do. */
static bool settle(struct hf_once *once, enum hf__once_next next)
{
    switch (next) {
    case HF__ONCE_SAY_DONE:
        once->outcome = HF_ONCE_DONE;
        break;
    case HF__ONCE_SAY_FAILED:
        once->outcome = HF_ONCE_FAILED;
        break;
    case HF__ONCE_SAY_LATE:
    case HF__ONCE_WRITE_LATE:
        once->outcome = HF_ONCE_LATE;
        break;
    case HF__ONCE_SAY_HELD:
    case HF__ONCE_WRITE_HELD:
        once->outcome = HF_ONCE_HELD;
        break;
    case HF__ONCE_SLEEP:
    case HF__ONCE_GO:
        break;
    }
    return once->outcome != HF_ONCE_OPEN;
}

/* What was written is what is on record now. */
static void take_in(struct hf__once_work *work)
{
    struct hf__once_found *found = &work->found;
    size_t len = hf__once_write(work->text, &work->ours);

    memcpy(found->text, work->text, len);
    found->text[len] = '\0';
    found->reading = hf__once_read(&found->record, found->text, len);
    found->there = true;
}

/* Looks again, and puts on record what follows. */
static enum hf_status write_next(struct hf__once_work *work, struct hf_lease *lease,
                                 enum hf__once_next *next, struct hf_error *err)
{
    enum hf_status status = hf__once_read_again(work, err);
    int64_t until_ms;

    if (status != HF_OK)
        return status;
    *next = hf__once_next(work, true, &until_ms);
    if (*next == HF__ONCE_GO)
        status = hf__once_write_running(work, lease, err);
    else if (*next == HF__ONCE_WRITE_HELD)
        status = hf__once_write_held(work, lease, err);
    else if (*next == HF__ONCE_WRITE_LATE)
        status = hf__once_write_late(work, lease, err);
    else
        return status;
    if (status == HF_OK)
        take_in(work);
    return status;
}

/* The turn cannot go on. What may pass, or the loss of the lock, is met again in the next one. */
static enum step give_up(const struct hf_once *once, enum hf_status *status, struct hf_error *err)
{
    bool passes = *status == HF_LOST || hf__wait_may_pass(*status);
    int64_t until_ns = hf__now_ns() + AGAIN_MS * HF__NS_PER_MS;

    if (!passes || until_ns >= once->until_ns)
        return STEP_ANSWER;
    if (pause_until(once, HF_NEVER, until_ns) != HF__WAITED_CANCELLED)
        return STEP_AGAIN;
    *status = cancelled(once, err);
    return STEP_ANSWER;
}

static enum step under_lock(struct hf_once *once, struct hf_lease *lease, enum hf_status *status,
                            struct hf_error *err)
{
    enum hf__once_next next = HF__ONCE_GO;
    struct hf_error trouble;

    *status = write_next(&once->work, lease, &next, err);
    if (*status == HF_OK && next == HF__ONCE_GO) {
        once->work.not_started = 0;
        once->lease = lease;
        once->outcome = HF_ONCE_RUN;
        return STEP_ANSWER;
    }
    /* If this fails, the lock is free when its ttl ends: a warning, unless there is one already. */
    if (hf_release(lease, &trouble) != HF_OK && *status == HF_OK && err->text[0] == '\0')
        memcpy(err->text, trouble.text, sizeof err->text);
    if (*status != HF_OK)
        return give_up(once, status, err);
    return settle(once, next) ? STEP_ANSWER : STEP_AGAIN;
}

/* What the handle goes on with. A failure that the lost lock kept off the record is begun again, in
 * line, whether or not it was heard by then that the lock was broken. */
static enum hf_once_outcome after(const struct hf_once *once, enum hf_once_ending told,
                                  enum hf_once_ending ending, enum hf_status status)
{
    if (ending == HF_ONCE_END_SUCCESS)
        return HF_ONCE_DONE;
    if ((told == HF_ONCE_END_FAILURE && status == HF_LOST) ||
        (status == HF_OK && hf__once_tries_again(&once->work, ending)))
        return HF_ONCE_OPEN;
    return status == HF_OK && once->work.ours.state == HF__ONCE_HELD ? HF_ONCE_HELD
                                                                     : HF_ONCE_FAILED;
}

static enum hf_status check_end(const struct hf_once *once, enum hf_once_ending ending,
                                struct hf_error *err)
{
    if (hf__forked(&once->mark))
        return not_for_children(once, err);
    if (once->lease == NULL)
        return hf__fail(err, HF_INVALID, "\"%.60s\": no turn is under way", once->name);
    if (ending < HF_ONCE_END_SUCCESS || ending > HF_ONCE_END_NOT_STARTED)
        return hf__fail(err, HF_INVALID, "\"%.60s\": a turn does not end that way", once->name);
    return HF_OK;
}

enum hf_status hf_once_end(struct hf_once *once, enum hf_once_ending ending, uint32_t code,
                           const void *output, size_t output_len, struct hf_error *err)
{
    struct hf__once_work *work = &once->work;
    const enum hf_once_ending told = ending;
    struct hf_error own, trouble;
    enum hf_status status, released;

    if (err == NULL)
        err = &own;
    if ((status = check_end(once, ending, err)) != HF_OK)
        return status;
    if (ending == HF_ONCE_END_FAILURE && hf_lease_loss(once->lease) == HF_LOSS_BROKEN)
        ending = HF_ONCE_END_CUT_OFF;
    work->ours.took_ms = (hf__now_ns() - work->started_ns) / HF__NS_PER_MS;
    work->ours.exit_code = code;
    work->ours.output = output;
    work->ours.output_len = output != NULL ? output_len : 0;
    status = hf__once_write_end(work, once->lease, ending, err);
    if (status == HF_OK)
        take_in(work);
    released = hf_release(once->lease, &trouble);
    once->lease = NULL;
    once->ran = true;
    once->outcome = after(once, told, ending, status);
    hf__once_show(once);
    if (status != HF_OK)
        return status;
    (void)with_warning(once, err);
    if (released != HF_OK && err->text[0] == '\0')
        memcpy(err->text, trouble.text, sizeof err->text);
    return HF_OK;
}
