/* turns.c - look at the record, take the lock, look again, write that it runs, run it, write the
 * outcome, release: until the slot is settled.
 *
 * A waiter stays in line: a server that left could not take over from one that crashed. Whatever a
 * turn finds, the record decides; the lock only keeps two from deciding at the same time. */
#include "cli/once/once.h"

#include "base/base.h"
#include "base/patience.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIGNAL_EXIT_BASE = 128,
    AGAIN_MS = 200, /* a pause before the next turn, after one that went wrong */
    SENTENCE_SIZE = 640
};

static int turns(struct once *once);
static void look_first(struct once *once);
static bool before(struct run_job *job, int *exit_code);
static void after(struct run_job *job, const struct run_outcome *outcome);
static void act(struct once *once, enum hf__once_next next);
static void sleep_until(struct once *once, int64_t until_ms);
static bool begin(struct once *once);
static void write_held(struct once *once);
static void write_late(struct once *once);
static void record_success(struct once *once);
static void record_failure(struct once *once, const struct run_outcome *outcome);

static void settle(struct once *once, int exit_code)
{
    once->turn = ONCE_SETTLED;
    once->exit_code = exit_code;
}

int once_run(struct once *once, const struct cli_context *context)
{
    struct run_job *job = &once->job;
    int exit_code = 0;
    if (!run_job_begin(job, &once->ask.run))
        return EXIT_HF_INTERNAL;
    job->hooks = (struct run_hooks){.before = before, .after = after, .data = once};
    if (run_job_open(job, context, &exit_code)) {
        take_describe(&job->take, once->label, sizeof once->label);
        exit_code = turns(once);
    }
    exit_code = run_job_end(job, exit_code);
    once_output_free(once->output);
    return exit_code;
}

static int turns(struct once *once)
{
    struct run_job *job = &once->job;
    for (;;) {
        once->turn = ONCE_NOT_BEGUN;
        look_first(once);
        if (once->turn == ONCE_AGAIN)
            continue;
        if (once->turn == ONCE_SETTLED)
            return once->exit_code;
        int exit_code = run_job_turn(job);
        if (job->die_of || once->turn == ONCE_NOT_BEGUN)
            return exit_code;
        if (once->turn == ONCE_SETTLED)
            return once->exit_code;
    }
}

/* We do not re-enter: whoever is above us is at this very job. */
static void busy_above(struct once *once)
{
    if (!once->ask.run.skip_ok)
        cli_stderr_say(once->job.writer, "\"%s\" is being run by a process above this one",
                       once->ask.run.name);
    settle(once, (int)once->ask.run.take.busy_exit);
}

static enum hf__once_next decide(struct once *once, bool holding, int64_t *until_ms)
{
    const struct hf__once_case now = {.record = once->found.there ? &once->found.record : NULL,
                                      .holding = holding,
                                      .now_ms = once->found.now_ms,
                                      .slot_start_ms = once->slot.start_ms};
    return hf__once_decide(&now, &once->rules, until_ms);
}

/* A signal that ends us while we wait. */
static bool told_to_end(struct once *once)
{
    bool from_kernel;
    struct run_job *job = &once->job;
    if (!run_signals_take(&job->signals, &job->die_of, &from_kernel))
        return false;
    settle(once, SIGNAL_EXIT_BASE + job->die_of);
    return true;
}

/* Before the lock is asked for: what is settled is settled. */
static void look_first(struct once *once)
{
    struct hf_error err;
    int64_t until_ms;
    enum hf_status status = once_look(once, &err);
    if (status == HF_CANCELLED && told_to_end(once))
        return;
    if (status != HF_OK) {
        settle(once, cli_stderr_fail(once->job.writer, &err));
        return;
    }
    enum hf__once_next next = decide(once, false, &until_ms);
    if (next == HF__ONCE_SLEEP)
        sleep_until(once, until_ms);
    else if (next != HF__ONCE_GO)
        act(once, next);
    else if (once->job.held)
        busy_above(once);
}

static const struct hf__once_record *found(const struct once *once)
{
    return once->found.there ? &once->found.record : NULL;
}

static void say(struct once *once, const struct hf__once_record *record, const char *advice)
{
    char sentence[SENTENCE_SIZE];
    once_sentence(sentence, sizeof sentence, once->ask.run.name, once->slot.name, record);
    if (once->job.lease)
        cli_stderr_say(once->job.writer, "%s%s", sentence, advice);
    else
        cli_stderr_say_last(once->job.writer, "%s%s", sentence, advice);
}

static void say_held(struct once *once, const struct hf__once_record *record)
{
    char advice[HF_NAME_MAX + 128];
    snprintf(advice, sizeof advice,
             "; find out what became of it, then: holdfast once --clear --reason TEXT %s",
             once->ask.run.name);
    say(once, record, advice);
    settle(once, EXIT_HF_HELD);
}

static void act(struct once *once, enum hf__once_next next)
{
    switch (next) {
    case HF__ONCE_SAY_DONE:
        if (!once->ask.run.skip_ok)
            say(once, found(once), "");
        settle(once, (int)once->ask.done_exit);
        break;
    case HF__ONCE_SAY_FAILED:
    case HF__ONCE_SAY_LATE:
        say(once, found(once), "");
        settle(once, EXIT_HF_NO);
        break;
    case HF__ONCE_SAY_HELD:
        say_held(once, found(once));
        break;
    case HF__ONCE_WRITE_HELD:
        write_held(once);
        break;
    case HF__ONCE_WRITE_LATE:
        write_late(once);
        break;
    case HF__ONCE_SLEEP: /* without the lock */
    case HF__ONCE_GO:
        once->turn = ONCE_AGAIN;
        break;
    }
}

/* Until the next attempt is due, or the wait is over. */
static void sleep_until(struct once *once, int64_t until_ms)
{
    struct take *take = &once->job.take;
    const struct hf__patience patience = {.deadline_ns = take->until_ns,
                                          .cancel_fd = take->signal_fd};
    int64_t left_ms = until_ms - once->found.now_ms;
    char left[32], advice[96];
    snprintf(advice, sizeof advice, "; the next attempt is due in %s",
             hf__format_duration(left, sizeof left, left_ms));
    /* Whoever failed tries again, also if it would not wait for others. */
    if (take->until_ns == 0 && !once->ran) {
        if (!once->ask.run.skip_ok)
            say(once, found(once), advice);
        settle(once, (int)once->ask.run.take.busy_exit);
        return;
    }
    once->turn = ONCE_AGAIN;
    int64_t at_ns = hf__time_add(hf__now_ns(), hf__ms_to_ns(left_ms));
    const struct hf__patience own = {.deadline_ns = HF_NEVER, .cancel_fd = take->signal_fd};
    switch (hf__patience_pause(take->until_ns == 0 ? &own : &patience, at_ns)) {
    case HF__WAITED_CANCELLED:
        told_to_end(once);
        break;
    case HF__WAITED_TIMEOUT:
        say(once, found(once), advice);
        settle(once, (int)once->ask.run.take.busy_exit);
        break;
    case HF__WAITED_READY:
        break;
    }
}

/* With the lock in hand. */

/* The turn cannot go on. What may pass, or the loss of the lock, is met again in the next one. */
static void give_up_turn(struct once *once, const struct hf_error *err)
{
    const struct hf__patience patience = {.deadline_ns = HF_NEVER,
                                          .cancel_fd = once->job.take.signal_fd};
    bool passes = err->code == HF_LOST || hf__wait_may_pass(err->code);
    int exit_code = cli_stderr_fail(once->job.writer, err);
    if (!passes || once->job.take.until_ns == 0) {
        settle(once, exit_code);
        return;
    }
    once->turn = ONCE_AGAIN;
    hf__patience_pause(&patience, hf__now_ns() + AGAIN_MS * HF__NS_PER_MS);
}

static enum hf_status put(struct once *once, const char *key, const struct hf__once_record *record,
                          int64_t keep_ms, struct hf_error *err)
{
    size_t len = hf__once_write(once->text, record);
    enum hf_status status = hf_record_put(once->job.lease, key, once->text, len, keep_ms, err);
    if (status == HF_OK && err->text[0] != '\0' && !once->warned) {
        cli_stderr_say(once->job.writer, "warning: %s", err->text);
        once->warned = true;
    }
    return status;
}

/* The settings of the key are on record with the first run; everybody's have to be the same. */
static enum hf_status check_settings(struct once *once, struct hf_error *err)
{
    struct hf__once_record record = {.state = HF__ONCE_SETTINGS,
                                     .settings = once->settings,
                                     .since_ms = -1,
                                     .took_ms = -1,
                                     .first_ms = once->slot.start_ms};
    enum hf_status status =
        once_read(once->job.store, once->ask.run.name, ONCE_SETTINGS_KEY, &once->found, err);
    if (status != HF_OK)
        return status;
    if (once->found.there)
        return once_same_settings(once, &once->found.record.settings, err);
    return put(once, ONCE_SETTINGS_KEY, &record, 0, err);
}

static bool before(struct run_job *job, int *exit_code)
{
    struct once *once = job->hooks.data;
    struct hf_error err;
    int64_t until_ms;
    *exit_code = 0; /* turns() has its own */
    enum hf_status status = check_settings(once, &err);
    if (status == HF_OK)
        status = once_read(job->store, once->ask.run.name, once->key, &once->found, &err);
    if (status != HF_OK) {
        give_up_turn(once, &err);
        return false;
    }
    enum hf__once_next next = decide(once, true, &until_ms);
    if (next == HF__ONCE_GO)
        return begin(once);
    act(once, next);
    return false;
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
    if (once->found.there && once->found.record.state == HF__ONCE_RUNNING)
        say(once, found(once), "; running it again");
    once->ours = hf__once_begun(found(once), &once->settings);
    once->ours.since_ms = once->found.now_ms;
    sign(once, &once->ours);
    if (put(once, once->key, &once->ours, 0, &err) != HF_OK) {
        give_up_turn(once, &err);
        return false;
    }
    snprintf(once->slot_variable, sizeof once->slot_variable, "HOLDFAST_ONCE_SLOT=%s",
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
        say_held(once, &once->ours);
    else
        give_up_turn(once, &err);
}

static void write_late(struct once *once)
{
    struct hf_error err;
    once->ours = hf__once_begun(found(once), &once->settings);
    once->ours.attempts--;
    once->ours.state = HF__ONCE_TOO_LATE;
    once->ours.since_ms = once->found.now_ms;
    sign(once, &once->ours);
    if (put(once, once->key, &once->ours, once->keep_ms, &err) != HF_OK) {
        give_up_turn(once, &err);
        return;
    }
    say(once, &once->ours, "");
    settle(once, EXIT_HF_NO);
}

/* CMD, with the lock still in hand, is over. */

static bool succeeded(const struct run_job *job, const struct run_outcome *outcome)
{
    return outcome && !outcome->start_errno && !outcome->exec_errno && !outcome->watchdog_died &&
           (outcome->cause == RUN_NOT_ENDING || outcome->cause == RUN_LEFTOVERS) &&
           atomic_load(&job->page->start) == RUN_STARTED && WIFEXITED(outcome->status) &&
           WEXITSTATUS(outcome->status) == 0;
}

static void after(struct run_job *job, const struct run_outcome *outcome)
{
    struct once *once = job->hooks.data;
    once->ran = true;
    once->ours.took_ms = (hf__now_ns() - once->started_ns) / HF__NS_PER_MS;
    once->ours.exit_code = (uint64_t)(outcome ? run_exit_code(outcome) : EXIT_HF_INTERNAL);
    if (once->output)
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
    once->ours.state = HF__ONCE_DONE;
    once->ours.exit_code = 0;
    enum hf_status status = put(once, once->key, &once->ours, once->keep_ms, &err);
    if (status == HF_OK || (status == HF_UNKNOWN && is_on_record(once))) {
        settle(once, 0);
        return;
    }
    cli_stderr_say(once->job.writer,
                   "%s succeeded, but that could not be put on record, and \"%s\" may be run "
                   "again: %s",
                   once->ask.run.command[0], once->ask.run.name, cli_text_of(&err));
    settle(once, EXIT_HF_UNRECORDED);
}

/* The lock was lost: another one is at it, or will be. It is ours to try again, in line. */
static void lost(struct once *once, bool told)
{
    once->turn = ONCE_AGAIN;
    if (told || once->job.take.until_ns == 0)
        settle(once, EXIT_HF_LOST);
}

/* What CMD did itself counts as a failure. That it could not be started here, or that we were told
 * to end, says nothing about the job: another server may do better. */
static void record_failure(struct once *once, const struct run_outcome *outcome)
{
    struct hf__once_record *ours = &once->ours;
    struct hf_error err;
    bool started = outcome && !outcome->start_errno && !outcome->exec_errno;
    bool told = started && outcome->told_to_end != 0;
    if (started && outcome->lost) {
        lost(once, told);
        return;
    }
    ours->state = HF__ONCE_FAILED;
    if (started && !told)
        ours->failures++;
    if (told && once->rules.hold_crashed)
        ours->state = HF__ONCE_HELD;
    int64_t keep_ms = ours->state == HF__ONCE_HELD ? 0 : once->keep_ms;
    enum hf_status status = put(once, once->key, ours, keep_ms, &err);
    if (status == HF_LOST) {
        lost(once, told);
        return;
    }
    if (status != HF_OK)
        cli_stderr_say(once->job.writer, "the failure of %s could not be put on record: %s",
                       once->ask.run.command[0], cli_text_of(&err));
    if (status != HF_OK || !started || told || ours->failures > once->rules.retries) {
        settle(once, (int)ours->exit_code);
        return;
    }
    once->turn = ONCE_AGAIN;
    say(once, ours, "; it will be tried again");
}
