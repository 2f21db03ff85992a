/* turns.c - look at the record, take the lock, look again, write that it runs, run it, write the
 * outcome, release: until the slot is settled.
 *
 * A waiter stays in line: a server that left could not take over from one that crashed. Whatever a
 * turn finds, the record decides; the lock only keeps two from deciding at the same time. */
#include "cli/once/once.h"

#include "base/base.h"
#include "base/patience.h"

enum { SIGNAL_EXIT_BASE = 128 };

static int turns(struct once *once);
static void read_first(struct once *once);
static enum hf_status read_slot(struct once *once, struct hf_error *err);
static void sleep_until(struct once *once, int64_t until_ms);

int once_run(struct once *once, const struct cli_context *context)
{
    struct run_job *job = &once->job;
    int exit_code = 0;

    if (!run_job_begin(job, &once->ask.run))
        return EXIT_HF_INTERNAL;
    job->hooks =
        (struct run_hooks){.before = once_before, .after = once_after, .keeps = true, .data = once};
    if (run_job_open(job, context, &exit_code)) {
        once->work.store = job->store;
        take_describe(&job->take, once->work.label, sizeof once->work.label);
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
        int exit_code;

        once->turn = ONCE_NOT_BEGUN;
        read_first(once);
        if (once->turn == ONCE_AGAIN)
            continue;
        if (once->turn == ONCE_SETTLED) {
            run_events_ended(job, once->exit_code);
            return once->exit_code;
        }
        job->exit_code = RUN_EXIT_AS_COMMAND;
        exit_code = run_job_turn(job);
        if (job->die_of || once->turn == ONCE_NOT_BEGUN)
            return exit_code;
        if (once->turn == ONCE_SETTLED)
            return once->exit_code;
    }
}

/* We do not re-enter: whoever is above us is at this very job. */
static void busy_above(struct once *once)
{
    (void)snprintf(once->sentence, sizeof once->sentence,
                   "\"%s\" is being run by a process above this one", once->ask.run.name);
    if (!once->ask.run.skip_ok)
        cli_stderr_say(once->job.writer, "%s", once->sentence);
    run_events_skipped(&once->job, once->sentence);
    once_settle(once, (int)once->ask.run.take.busy_exit);
}

/* A signal that ends us while we wait. */
static bool told_to_end(struct once *once)
{
    bool from_kernel;
    struct run_job *job = &once->job;

    if (!run_signals_take(&job->signals, &job->die_of, &from_kernel))
        return false;
    once_settle(once, SIGNAL_EXIT_BASE + job->die_of);
    return true;
}

/* Before the lock is asked for: what is settled needs no lock. */
static void read_first(struct once *once)
{
    struct hf_error err;
    int64_t until_ms;
    enum hf_status status = read_slot(once, &err);
    enum hf__once_next next;

    if (status == HF_CANCELLED && told_to_end(once))
        return;
    if (status != HF_OK) {
        run_events_failed(&once->job, cli_text_of(&err));
        once_settle(once, cli_stderr_fail(once->job.writer, &err));
        return;
    }
    next = hf__once_next(&once->work, false, &until_ms);
    if (next == HF__ONCE_SLEEP)
        sleep_until(once, until_ms);
    else if (next != HF__ONCE_GO)
        once_say_settled(once, next);
    else if (once->job.held != NULL)
        busy_above(once);
}

/* Waits for the store as the options say. */
static enum hf_status read_slot(struct once *once, struct hf_error *err)
{
    struct take *take = &once->job.take;
    const struct hf_open_options waiting = take_waiting(take);
    char edge[ONCE_EDGE_SIZE];
    enum hf_status status = hf__once_read_waiting(&once->work, take->until_ns, &waiting, err);

    if (hf__once_edge(&once->work, edge, sizeof edge))
        cli_stderr_say_now(once->job.writer, "warning: %s", edge);
    take->trouble = HF_OK;
    return status;
}

/* Until the next attempt is due, or the wait is over. After a failure of our own we try again even
 * if we would not wait for others. */
static void sleep_until(struct once *once, int64_t until_ms)
{
    struct take *take = &once->job.take;
    const struct hf__patience patience = {.deadline_ns = once->ran ? HF_NEVER : take->until_ns,
                                          .cancel_fd = take->signal_fd};
    int64_t left_ms = until_ms - once->work.found.now_ms;
    char left[32], advice[96];

    once->turn = ONCE_AGAIN;
    switch (hf__patience_pause(&patience, hf__time_add(hf__now_ns(), hf__ms_to_ns(left_ms)))) {
    case HF__WAITED_CANCELLED:
        (void)told_to_end(once);
        break;
    case HF__WAITED_TIMEOUT:
        (void)snprintf(advice, sizeof advice, "; the next attempt is due in %s",
                       hf__format_duration(left, sizeof left, left_ms));
        once_skip(once, advice);
        once_settle(once, (int)once->ask.run.take.busy_exit);
        break;
    case HF__WAITED_READY:
        break;
    }
}
