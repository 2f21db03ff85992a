/* at_least.c - run --at-least: not again for a while after a start.
 *
 * A holder that is about to start CMD leaves a record: not before this time, by the
 * store's clock. Whoever finds it in the future gives the lock back, as if it were busy. A long ttl
 * would be simpler, but stores cap those. */
#include "cli/run/at_least.h"

#include "base/base.h"
#include "core/wait.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONGEST_DAYS = 366,
    AGAIN_MS = 1000, /* before the next turn, if the store did not answer */
    VALUE_SIZE = HF_LABEL_MAX + 32,
    SIGNAL_EXIT_BASE = 128
};

/* What is on record. */
struct mark {
    int64_t not_before_ms; /* 0: nothing */
    int64_t written_ms;    /* when that was written */
    char label[HF_LABEL_MAX + 1];
};

static bool before(struct run_job *job, int *exit_code);
static void read_mark(struct mark *mark, const struct hf_record *record);
static int64_t left_of(const struct mark *mark, int64_t every_ms, int64_t now_ms);
static bool too_early(struct run_job *job, const struct mark *mark, int64_t left_ms,
                      int *exit_code);
static bool leave_mark(struct run_job *job, int64_t now_ms, const char *label, int *exit_code);
static bool failed(struct run_job *job, const struct hf_error *err, int *exit_code);

int at_least_check(const struct cli_command *command, const struct at_least *at_least)
{
    if (!at_least->given ||
        (at_least->every_ms > 0 && at_least->every_ms <= LONGEST_DAYS * (int64_t)HF_TTL_MAX_MS))
        return 0;
    return cli_usage_error(command, "--at-least: more than 0, and at most %dd", LONGEST_DAYS);
}

static int refuse(const struct run_job *job, enum hf_status status, const char *why)
{
    struct hf_error err;

    (void)hf__fail_lock(&err, status, job->options->name, hf_store_url(job->store),
                        ": --at-least %s", why);
    return cli_stderr_fail(job->writer, &err);
}

int at_least_run(struct at_least *at_least, struct run_job *job)
{
    if (!at_least->given)
        return run_job_turn(job);
    if ((hf_store_features(job->store) & HF_FEATURE_RECORDS) == 0)
        return refuse(job, HF_UNSUPPORTED, "needs records, which this kind of store does not keep");
    if (job->held != NULL)
        return refuse(job, HF_INVALID,
                      "is for those who take the lock, and a process above this one holds it");
    job->hooks = (struct run_hooks){.before = before, .data = at_least};
    for (;;) {
        int exit_code = run_job_turn(job);

        if (job->die_of || !at_least->again)
            return exit_code;
        if (!run_job_pause(job, at_least->until_ns))
            return SIGNAL_EXIT_BASE + job->die_of;
    }
}

static bool before(struct run_job *job, int *exit_code)
{
    struct at_least *at_least = job->hooks.data;
    struct mark mark = {.not_before_ms = 0};
    struct hf_record *record;
    struct hf_error err;
    int64_t now_ms = 0, left_ms;

    at_least->again = false;
    if (hf_record_get(job->store, job->options->name, AT_LEAST_KEY, &record, &now_ms, &err) !=
        HF_OK)
        return failed(job, &err, exit_code);
    /* A mark of our own, from an earlier turn, is about a start that was put off. */
    if (record != NULL && record->token != at_least->unsure)
        read_mark(&mark, record);
    hf_record_free(record);
    left_ms = left_of(&mark, at_least->every_ms, now_ms);
    if (left_ms <= 0) {
        at_least->unsure = hf_lease_token(job->lease);
        return leave_mark(job, now_ms, job->take.shown_label, exit_code);
    }
    /* The clock went back: the mark is written anew, so that it is every_ms at most from now. */
    if (left_ms > at_least->every_ms && !leave_mark(job, now_ms, mark.label, exit_code))
        return false;
    return too_early(job, &mark, left_ms, exit_code);
}

/* The last start may have asked for another time than we do: the shorter one counts. */
static int64_t left_of(const struct mark *mark, int64_t every_ms, int64_t now_ms)
{
    int64_t ours_ms = hf__time_add(mark->written_ms, every_ms);

    if (mark->not_before_ms == 0)
        return 0;
    return (mark->not_before_ms < ours_ms ? mark->not_before_ms : ours_ms) - now_ms;
}

/* What makes no sense counts as nothing, and is overwritten: it would stop the job for ever. */
static void read_mark(struct mark *mark, const struct hf_record *record)
{
    char digits[24] = "";
    const char *value = record->value;
    size_t len = strcspn(value, " ");
    uint64_t number;

    if (len < sizeof digits)
        memcpy(digits, value, len);
    if (!hf__parse_u64(digits, &number) || number > INT64_MAX / 2)
        return;
    mark->not_before_ms = (int64_t)number;
    mark->written_ms = record->written_ms;
    hf__copy_printable(mark->label, sizeof mark->label, value[len] == ' ' ? value + len + 1 : "");
}

/* A wait that ends before that is hopeless, so it is over at once. */
static bool wait_for(struct run_job *job, int64_t ms)
{
    struct at_least *at_least = job->hooks.data;
    int64_t until_ns = hf__time_add(hf__now_ns(), hf__ms_to_ns(ms));

    if (until_ns > job->take.until_ns)
        return false;
    at_least->again = job->again = true;
    at_least->until_ns = until_ns;
    return true;
}

static bool too_early(struct run_job *job, const struct mark *mark, int64_t left_ms, int *exit_code)
{
    struct at_least *at_least = job->hooks.data;
    const struct run_options *options = job->options;
    char why[CLI_LINE_MAX], every[32], left[32];
    bool waits;

    if (left_ms > at_least->every_ms)
        left_ms = at_least->every_ms;
    waits = wait_for(job, left_ms);
    (void)hf__format_duration(every, sizeof every, at_least->every_ms);
    (void)hf__format_duration(left, sizeof left, left_ms);
    (void)snprintf(
        why, sizeof why,
        "lock \"%s\": %s%sstarted less than %s ago (--at-least), not again for another %s%s",
        options->name, mark->label, mark->label[0] != '\0' ? " " : "", every, left,
        waits ? "; waiting" : "");
    if (waits)
        EVENTS_SAY(job->events, EVENT_WAITING, EVENT_TEXT("status", hf_status_name(HF_BUSY)),
                   EVENT_TEXT("reason", why));
    else
        run_events_skipped(job, why);
    if (!options->skip_ok)
        cli_stderr_say(job->writer, "%s", why);
    *exit_code = (int)options->take.busy_exit;
    return false;
}

static bool leave_mark(struct run_job *job, int64_t now_ms, const char *label, int *exit_code)
{
    const struct at_least *at_least = job->hooks.data;
    char value[VALUE_SIZE];
    struct hf_error err;
    int len = snprintf(value, sizeof value, "%" PRId64 " %s", now_ms + at_least->every_ms, label);

    if (hf_record_put(job->lease, AT_LEAST_KEY, value, (size_t)len, at_least->every_ms, &err) ==
        HF_OK)
        return true;
    return failed(job, &err, exit_code);
}

/* Without the record CMD is not started. What may pass is tried again while there is time. */
static bool failed(struct run_job *job, const struct hf_error *err, int *exit_code)
{
    *exit_code = cli_stderr_fail(job->writer, err);
    if (!hf__wait_may_pass(err->code) || !wait_for(job, AGAIN_MS))
        run_events_failed(job, cli_text_of(err));
    return false;
}
