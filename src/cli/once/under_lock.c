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

static enum hf_status put_with_settings(struct once *once, const struct hf_record_write *write,
                                        struct hf_error *err)
{
    const struct hf__once_record settings = {.state = HF__ONCE_SETTINGS,
                                             .settings = once->settings,
                                             .since_ms = -1,
                                             .took_ms = -1,
                                             .first_ms = once->slot.start_ms};
    const struct hf_record_write first = {.key = ONCE_SETTINGS_KEY,
                                          .value = once->settings_text,
                                          .value_len =
                                              hf__once_write(once->settings_text, &settings)};

    return hf__record_write_both(once->job.lease, &first, write, err);
}

/* The settings of a key are put on record with its first slot. */
static enum hf_status put(struct once *once, const char *key, const struct hf__once_record *record,
                          int64_t keep_ms, struct hf_error *err)
{
    const struct hf_record_write write = {.key = key,
                                          .value = once->text,
                                          .value_len = hf__once_write(once->text, record),
                                          .keep_ms = keep_ms};
    enum hf_status status = once->settings_due ? put_with_settings(once, &write, err)
                                               : hf__record_write(once->job.lease, &write, err);

    if (status == HF_OK)
        once->settings_due = false;
    if (status == HF_OK && err->text[0] != '\0' && !once->warned) {
        cli_stderr_say(once->job.writer, "warning: %s", err->text);
        once->warned = true;
    }
    return status;
}

/* Everybody's settings of the key have to be the same. */
static enum hf_status check_settings(struct once *once, struct hf_error *err)
{
    enum hf_status status =
        once_read(once->job.store, once->ask.run.name, ONCE_SETTINGS_KEY, &once->found, err);

    once->settings_due = status == HF_OK && !once->found.there;
    if (status == HF_OK && once->found.there)
        status = once_same_settings(once, &once->found.record.settings, err);
    return status;
}

/* Looks again. True: CMD is to be started. */
static bool look_again(struct once *once)
{
    struct hf_error err;
    int64_t until_ms;
    enum hf_status status = check_settings(once, &err);
    enum hf__once_next next;

    if (status == HF_OK)
        status = once_read(once->job.store, once->ask.run.name, once->key, &once->found, &err);
    if (status != HF_OK) {
        give_up_turn(once, &err);
        return false;
    }
    next = once_decide(once, true, &until_ms);
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

static void sign(struct once *once, struct hf__once_record *record)
{
    memcpy(record->by, once->label, sizeof record->by);
    record->token = hf_lease_token(once->job.lease);
}

/* Writes that it runs; from then on a crash is seen by whoever comes next. */
static bool begin(struct once *once)
{
    struct run_job *job = &once->job;
    struct hf_error err;

    if (once->found.there && once->found.record.state == HF__ONCE_RUNNING &&
        !once_not_started(once))
        once_say(once, once_on_record(once), "; running it again");
    once->ours = hf__once_begun(once_on_record(once), &once->settings);
    if (once_came_after(once) && once->ours.failures > once->rules.retries)
        once->ours.failures = 0;
    once->ours.since_ms = once->found.now_ms;
    sign(once, &once->ours);
    once->not_started = once->ours.token;
    if (put(once, once->key, &once->ours, 0, &err) != HF_OK) {
        give_up_turn(once, &err);
        return false;
    }
    (void)snprintf(once->slot_variable, sizeof once->slot_variable, "HOLDFAST_ONCE_SLOT=%s",
                   once->slot.name);
    once->variables[0] = once->slot_variable;
    job->variables = once->variables;
    if (once->ask.output) {
        once_output_free(once->output);
        once->output = once_output_begin(job->writer, job->output);
    }
    once->started_ns = hf__now_ns();
    return true;
}

static void write_held(struct once *once)
{
    struct hf_error err;

    once->ours = once->found.record;
    once->ours.state = HF__ONCE_HELD;
    if (put(once, once->key, &once->ours, 0, &err) == HF_OK)
        once_say_held(once, &once->ours);
    else
        give_up_turn(once, &err);
}

static void write_late(struct once *once)
{
    struct hf_error err;

    once->ours = hf__once_begun(once_on_record(once), &once->settings);
    once->ours.attempts--;
    once->ours.state = HF__ONCE_TOO_LATE;
    once->ours.since_ms = once->found.now_ms;
    sign(once, &once->ours);
    if (put(once, once->key, &once->ours, once->keep_ms, &err) != HF_OK) {
        give_up_turn(once, &err);
        return;
    }
    once_refuse(once, &once->ours, "", EXIT_HF_NO);
}

static bool succeeded(const struct run_job *job, const struct run_outcome *outcome)
{
    return outcome != NULL && !outcome->start_errno && !outcome->exec_errno &&
           !outcome->watchdog_died &&
           (outcome->cause == RUN_NOT_ENDING || outcome->cause == RUN_LEFTOVERS) &&
           atomic_load(&job->page->start) == RUN_STARTED && WIFEXITED(outcome->status) &&
           WEXITSTATUS(outcome->status) == 0;
}

/* A short job has no keeper yet. To put its outcome on record may take longer than the rest of its
 * lease. */
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

    once->ran = true;
    if (outcome != NULL && atomic_load(&job->page->start) != RUN_START_REFUSED)
        once->not_started = 0;
    keep_on(once);
    once->ours.took_ms = (hf__now_ns() - once->started_ns) / HF__NS_PER_MS;
    once->ours.exit_code = (uint64_t)(outcome != NULL ? run_exit_code(outcome) : EXIT_HF_INTERNAL);
    if (once->output != NULL)
        once->ours.output = once_output_end(once->output, &once->ours.output_len);
    if (succeeded(job, outcome))
        record_success(once);
    else
        record_failure(once, outcome);
}

/* An answer that never came may have been a yes. */
static bool is_on_record(struct once *once)
{
    struct hf_error err;
    uint64_t token = once->ours.token;

    return once_read(once->job.store, once->ask.run.name, once->key, &once->found, &err) == HF_OK &&
           once->found.there && once->found.record.state == HF__ONCE_DONE &&
           once->found.record.token == token;
}

static void record_success(struct once *once)
{
    struct hf_error err;
    enum hf_status status;

    once->ours.state = HF__ONCE_DONE;
    once->ours.exit_code = 0;
    status = put(once, once->key, &once->ours, once->keep_ms, &err);
    if (status == HF_OK || (status == HF_UNKNOWN && is_on_record(once))) {
        once_settle(once, 0);
        return;
    }
    cli_stderr_say(once->job.writer,
                   "%s succeeded, but that could not be put on record, and \"%s\" may be run "
                   "again: %s",
                   once->ask.run.command[0], once->ask.run.name, cli_text_of(&err));
    once_settle(once, EXIT_HF_UNRECORDED);
}

/* The lock was lost: another one is at it, or will be. It is ours to try again, in line. */
static void lost(struct once *once, bool told)
{
    once->turn = ONCE_AGAIN;
    if (told || once->job.take.until_ns == 0)
        once_settle(once, EXIT_HF_LOST);
}

/* What CMD did itself counts as a failure. That it could not be started here, that its watchdog was
 * killed, or that we were told to end, by a signal or by whoever broke the lock, says nothing about
 * the job: another server may do better. A broken hold is still there to put that down. */
static void record_failure(struct once *once, const struct run_outcome *outcome)
{
    struct hf__once_record *ours = &once->ours;
    struct hf_error err;
    bool started = outcome != NULL && !outcome->start_errno && !outcome->exec_errno;
    bool broken = hf_lease_loss(once->job.lease) == HF_LOSS_BROKEN;
    bool told = started && (outcome->told_to_end != 0 || broken);
    bool cut_off = told || (started && outcome->watchdog_died);
    int64_t keep_ms;
    enum hf_status status;

    if (started && outcome->lost && !broken) {
        lost(once, told);
        return;
    }
    ours->state = HF__ONCE_FAILED;
    if (started && !cut_off)
        ours->failures++;
    if (cut_off && once->rules.hold_crashed)
        ours->state = HF__ONCE_HELD;
    keep_ms = ours->state == HF__ONCE_HELD ? 0 : once->keep_ms;
    status = put(once, once->key, ours, keep_ms, &err);
    if (status == HF_LOST) {
        lost(once, told);
        return;
    }
    if (status != HF_OK)
        cli_stderr_say(once->job.writer, "the failure of %s could not be put on record: %s",
                       once->ask.run.command[0], cli_text_of(&err));
    if (status != HF_OK || !started || cut_off || ours->failures > once->rules.retries) {
        once_settle(once, (int)ours->exit_code);
        return;
    }
    once->turn = ONCE_AGAIN;
    once_say(once, ours, "; it will be tried again");
}
