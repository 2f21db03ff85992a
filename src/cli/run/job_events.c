/* job_events.c - what a job tells --events and --metrics on its way. */
#include "cli/run/job.h"

#include "base/base.h"

#include <sys/wait.h>

static int64_t since_ms(int64_t from_ns)
{
    return from_ns == 0 ? 0 : (hf__now_ns() - from_ns) / HF__NS_PER_MS;
}

void run_events_begin(struct run_job *job)
{
    job->times = (struct run_times){.wanted_ns = hf__now_ns()};
    events_set_token(job->events, 0);
}

void run_events_waiting(struct take *take, const struct hf_error *why)
{
    struct run_job *job = take->data;

    events_set_label(job->events, take->shown_label);
    EVENTS_SAY(job->events, EVENT_WAITING, EVENT_TEXT("status", hf_status_name(why->code)),
               EVENT_TEXT("reason", cli_text_of(why)));
}

void run_events_acquired(struct run_job *job)
{
    job->times.held_ns = job->times.renewed_ns = hf__now_ns();
    job->times.told_lost = false;
    events_set_label(job->events, job->take.shown_label);
    events_set_token(job->events, hf_lease_token(job->lease));
    EVENTS_SAY(job->events, EVENT_ACQUIRED,
               EVENT_NUMBER("waited_ms", since_ms(job->times.wanted_ns)),
               EVENT_NUMBER("ttl_ms", (int64_t)hf_lease_ttl_ms(job->lease)));
}

void run_events_started(struct run_job *job)
{
    job->times.started_ns = hf__now_ns();
    events_say(job->events, EVENT_STARTED, NULL);
}

/* The keeper renews at a third of the ttl or sooner, and tries again if it has to: past two thirds,
 * one more mishap would have cost the lock. */
void run_events_renewed(struct run_job *job, const struct hf_lease *lease)
{
    int64_t gap_ms = since_ms(job->times.renewed_ns);

    job->times.renewed_ns = hf__now_ns();
    if (gap_ms > (int64_t)hf_lease_ttl_ms(lease) * 2 / 3)
        EVENTS_SAY(job->events, EVENT_RENEWED_LATE, EVENT_NUMBER("gap_ms", gap_ms),
                   EVENT_NUMBER("remaining_ms", hf_lease_remaining_ms(lease)));
}

void run_events_lost(struct run_job *job, const char *reason)
{
    if (job->times.told_lost)
        return;
    job->times.told_lost = true;
    EVENTS_SAY(job->events, EVENT_LOST, EVENT_TEXT("reason", reason),
               EVENT_NUMBER("held_ms", since_ms(job->times.held_ns)));
}

void run_events_exited(struct run_job *job, const struct run_outcome *outcome)
{
    int64_t ran_ms = since_ms(job->times.started_ns);

    job->times.ran_ms = ran_ms;
    if (atomic_load(&job->page->command_pid) == 0 || outcome->exec_errno || outcome->start_errno)
        return;
    if (WIFSIGNALED(outcome->status))
        EVENTS_SAY(job->events, EVENT_EXITED, EVENT_NUMBER("signal", WTERMSIG(outcome->status)),
                   EVENT_NUMBER("ran_ms", ran_ms));
    else
        EVENTS_SAY(job->events, EVENT_EXITED, EVENT_NUMBER("status", WEXITSTATUS(outcome->status)),
                   EVENT_NUMBER("ran_ms", ran_ms));
}

void run_events_released(struct run_job *job)
{
    EVENTS_SAY(job->events, EVENT_RELEASED, EVENT_NUMBER("held_ms", since_ms(job->times.held_ns)));
}

void run_events_skipped(struct run_job *job, const char *reason)
{
    events_set_label(job->events, job->take.shown_label);
    EVENTS_SAY(job->events, EVENT_SKIPPED, EVENT_TEXT("reason", reason),
               EVENT_NUMBER("waited_ms", since_ms(job->times.wanted_ns)));
}

void run_events_failed(struct run_job *job, const char *reason)
{
    EVENTS_SAY(job->events, EVENT_FAILED, EVENT_TEXT("reason", reason));
}

void run_events_ended(struct run_job *job, int exit_code)
{
    int64_t took_ms = since_ms(job->times.wanted_ns);

    if (job->times.started_ns == 0)
        EVENTS_SAY(job->events, EVENT_ENDED, EVENT_NUMBER("exit_code", exit_code),
                   EVENT_NUMBER("took_ms", took_ms));
    else
        EVENTS_SAY(job->events, EVENT_ENDED, EVENT_NUMBER("exit_code", exit_code),
                   EVENT_NUMBER("took_ms", took_ms), EVENT_NUMBER("ran_ms", job->times.ran_ms));
    events_set_token(job->events, 0);
    job->times.ended = true;
}
