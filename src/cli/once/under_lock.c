/* under_lock.c - what once does with the lock in hand: before CMD starts, and when it is over. */
#include "cli/once/once.h"

#include "base/base.h"
#include "base/patience.h"
#include "client/client.h"

#include <string.h>
#include <sys/wait.h>

enum { AGAIN_MS = 200 }; /* a pause before the next turn, after one that went wrong */

static bool begin(struct once *once);
static void write_held(struct once *once);
static void write_late(struct once *once);
static void record_success(struct once *once);
static void record_failure(struct once *once, const struct run_outcome *outcome);

/* The turn cannot go on. What may pass, or the loss of the lock, is met again in the next one. */
static void give_up_turn(struct once *once, const struct hf_error *err)
{
    const struct hf__patience patience = {.deadline_ns = HF_NEVER,
                                          .cancel_fd = once->job.take.signal_fd};
    bool passes = err->code == HF_LOST || hf__wait_may_pass(err->code);
    int exit_code = cli_stderr_fail(once->job.writer, err);

    if (!passes || once->job.take.until_ns == 0) {
        run_events_failed(&once->job, cli_text_of(err));
        once_settle(once, exit_code);
        return;
    }
    once->turn = ONCE_AGAIN;
    (void)hf__patience_pause(&patience, hf__now_ns() + AGAIN_MS * HF__NS_PER_MS);
}

/* What the store says with a record that it took. */
static void warn(struct once *once, const struct hf_error *err)
{
    if (err->text[0] == '\0' || once->warned)
        return;
    cli_stderr_say(once->job.writer, "warning: %s", err->text);
    once->warned = true;
}

/* After a put was answered so. */
static bool written(struct once *once, enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK)
        warn(once, err);
    else
        give_up_turn(once, err);
    return status == HF_OK;
}

/* Looks again. True: CMD is to be started. */
static bool look_again(struct once *once)
{
    struct hf_error err;
    int64_t until_ms;
    enum hf__once_next next;

    if (hf__once_read_again(&once->work, &err) != HF_OK) {
        give_up_turn(once, &err);
        return false;
    }
    next = hf__once_next(&once->work, true, &until_ms);
    if (next == HF__ONCE_GO)
        return begin(once);
    if (next == HF__ONCE_WRITE_HELD)
        write_held(once);
    else if (next == HF__ONCE_WRITE_LATE)
        write_late(once);
    else if (next == HF__ONCE_SLEEP)
        once->turn = ONCE_AGAIN; /* without the lock */
    else
        once_say_settled(once, next);
    return false;
}

bool once_before(struct run_job *job, int *exit_code)
{
    struct once *once = job->hooks.data;
    bool go = look_again(once);

    job->again = once->turn == ONCE_AGAIN; /* it is not over yet */
    *exit_code = once->turn == ONCE_SETTLED ? once->exit_code : 0;
    return go;
}

/* Writes that it runs; from then on a crash is seen by whoever comes next. */
static bool begin(struct once *once)
{
    struct run_job *job = &once->job;
    struct hf__once_work *work = &once->work;
    struct hf_error err;

    if (work->found.there && work->found.record.state == HF__ONCE_RUNNING &&
        !hf__once_not_started(work))
        once_say(once, hf__once_on_record(work), "; running it again");
    if (!written(once, hf__once_write_running(work, job->lease, &err), &err))
        return false;
    (void)snprintf(once->slot_variable, sizeof once->slot_variable, "HOLDFAST_ONCE_SLOT=%s",
                   work->slot.name);
    once->variables[0] = once->slot_variable;
    job->variables = once->variables;
    if (once->ask.output) {
        once_output_free(once->output);
        once->output = once_output_begin(job->writer, job->output);
    }
    work->started_ns = hf__now_ns();
    return true;
}

static void write_held(struct once *once)
{
    struct hf_error err;

    if (written(once, hf__once_write_held(&once->work, once->job.lease, &err), &err))
        once_say_held(once, &once->work.ours);
}

static void write_late(struct once *once)
{
    struct hf_error err;

    if (written(once, hf__once_write_late(&once->work, once->job.lease, &err), &err))
        once_refuse(once, &once->work.ours, "", EXIT_HF_NO);
}

static bool succeeded(const struct run_job *job, const struct run_outcome *outcome)
{
    return outcome != NULL && !outcome->start_errno && !outcome->exec_errno &&
           !outcome->watchdog_died &&
           (outcome->cause == RUN_NOT_ENDING || outcome->cause == RUN_LEFTOVERS) &&
           atomic_load(&job->page->start) == RUN_STARTED && WIFEXITED(outcome->status) &&
           WEXITSTATUS(outcome->status) == 0;
}

/* To put an outcome on record may take longer than the rest of the lease. It has a keeper already,
 * unless that, or CMD, could not be started. */
static void keep_on(struct once *once)
{
    struct hf_error err;
    enum hf_status status = hf_keep(once->job.lease, &err);

    if (status != HF_OK && status != HF_LOST)
        cli_stderr_say(once->job.writer, "lock \"%s\" cannot be renewed: %s", once->ask.run.name,
                       err.text);
}

void once_after(struct run_job *job, const struct run_outcome *outcome)
{
    struct once *once = job->hooks.data;
    struct hf__once_record *ours = &once->work.ours;

    once->ran = true;
    if (outcome != NULL && atomic_load(&job->page->start) != RUN_START_REFUSED)
        once->work.not_started = 0;
    keep_on(once);
    ours->took_ms = (hf__now_ns() - once->work.started_ns) / HF__NS_PER_MS;
    ours->exit_code = (uint64_t)(outcome != NULL ? run_exit_code(outcome) : EXIT_HF_INTERNAL);
    if (once->output != NULL)
        ours->output = once_output_end(once->output, &ours->output_len);
    if (succeeded(job, outcome))
        record_success(once);
    else
        record_failure(once, outcome);
}

static void record_success(struct once *once)
{
    struct hf_error err;

    if (hf__once_write_end(&once->work, once->job.lease, HF_ONCE_END_SUCCESS, &err) == HF_OK) {
        warn(once, &err);
        once_settle(once, 0);
        return;
    }
    cli_stderr_say(once->job.writer,
                   "%s succeeded, but that could not be put on record, and \"%s\" may be run "
                   "again: %s",
                   once->ask.run.command[0], once->ask.run.name, cli_text_of(&err));
    once_settle(once, EXIT_HF_UNRECORDED);
}

/* The lock was lost: somebody else is at it, or will be. We try again, in line. */
static void lost(struct once *once, bool told)
{
    once->turn = ONCE_AGAIN;
    if (told || once->job.take.until_ns == 0)
        once_settle(once, EXIT_HF_LOST);
}

/* What CMD did itself counts as a failure. That it could not be started here, that its watchdog was
 * killed, or that we were told to end, by a signal or by whoever broke the lock, says nothing about
 * the job: another server may do better. A broken hold lasts long enough to put that on record. */
static void record_failure(struct once *once, const struct run_outcome *outcome)
{
    struct hf_error err;
    bool started = outcome != NULL && !outcome->start_errno && !outcome->exec_errno;
    bool broken = hf_lease_loss(once->job.lease) == HF_LOSS_BROKEN;
    bool told = started && (outcome->told_to_end != 0 || broken);
    enum hf_once_ending ending = !started                         ? HF_ONCE_END_NOT_STARTED
                                 : told || outcome->watchdog_died ? HF_ONCE_END_CUT_OFF
                                                                  : HF_ONCE_END_FAILURE;
    enum hf_status status = HF_LOST;

    if (!started || !outcome->lost || broken)
        status = hf__once_write_end(&once->work, once->job.lease, ending, &err);
    if (status == HF_LOST) {
        lost(once, told);
        return;
    }
    if (status == HF_OK)
        warn(once, &err);
    else
        cli_stderr_say(once->job.writer, "the failure of %s could not be put on record: %s",
                       once->ask.run.command[0], cli_text_of(&err));
    if (status != HF_OK || !hf__once_tries_again(&once->work, ending)) {
        once_settle(once, (int)once->work.ours.exit_code);
        return;
    }
    once->turn = ONCE_AGAIN;
    once_say(once, &once->work.ours, "; it will be tried again");
}
