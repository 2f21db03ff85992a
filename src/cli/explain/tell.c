/* tell.c - the story of a lock, for people. What cannot be seen says so. */
#include "cli/explain/explain.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { DURATION_SIZE = 32 };
#define UNSEEN "this store does not tell"

const char *explain_time(char out[EXPLAIN_TIME_SIZE], int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    out[0] = '\0';
    if (ms > 0 && gmtime_r(&seconds, &tm) != NULL)
        (void)strftime(out, EXPLAIN_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

static const char *duration(char out[DURATION_SIZE], int64_t ms)
{
    return hf__format_duration(out, DURATION_SIZE, ms > 0 ? ms : 0);
}

static void print_holder(FILE *out, const struct explain_story *story)
{
    const struct hf_lock_info *info = &story->lock.info;
    char label[HF_LABEL_MAX + 1], time[EXPLAIN_TIME_SIZE], text[DURATION_SIZE];

    hf__copy_printable(label, sizeof label, info->label);
    fprintf(out, "  held by    %s%s\n", label[0] != '\0' ? label : "an unknown holder",
            info->foreign ? ", a client that is not holdfast" : "");
    if (explain_since_ms(story) > 0)
        fprintf(out, "  since      %s, %s ago\n", explain_time(time, explain_since_ms(story)),
                duration(text, info->age_ms));
    else
        fputs("  since      " UNSEEN "\n", out);
    if (info->token == 0)
        fputs("  token      none\n", out);
    else if (explain_token_ms(story) > 0)
        fprintf(out, "  token      %" PRIu64 ", from the clock at %s\n", info->token,
                explain_time(time, explain_token_ms(story)));
    else
        fprintf(out, "  token      %" PRIu64 ", which is not a time\n", info->token);
}

static void print_times(FILE *out, const struct explain_story *story)
{
    const struct hf_lock_info *info = &story->lock.info;
    char time[EXPLAIN_TIME_SIZE], text[DURATION_SIZE];

    if (info->renewed_ms > 0)
        fprintf(out, "  renewed    %s, %s ago\n", explain_time(time, info->renewed_ms),
                duration(text, story->at_us / 1000 - info->renewed_ms));
    else
        fputs("  renewed    " UNSEEN "\n", out);
    if (info->endless)
        fputs("  time left  for ever: its key has no ttl\n", out);
    else if (info->remaining_ms >= 0)
        fprintf(out, "  time left  %s", duration(text, info->remaining_ms));
    else
        fputs("  time left  " UNSEEN "\n", out);
    if (!info->endless && info->remaining_ms >= 0 && info->ttl_ms > 0)
        fprintf(out, " of %s\n", duration(text, info->ttl_ms));
    else if (!info->endless && info->remaining_ms >= 0)
        fputs("\n", out);
}

static void print_seems(FILE *out, const struct explain_story *story)
{
    const char *words = "";

    switch (story->explained.seems) {
    case HF__SEEMS_NOBODY:
        return;
    case HF__SEEMS_ALIVE:
        words = "alive: it has renewed on time";
        break;
    case HF__SEEMS_LATE:
        words = "frozen, cut off or gone: it should have renewed by now (or renews by hand)";
        break;
    case HF__SEEMS_UNKNOWN:
        words = "unknown: nothing shows whether the holder is alive";
        break;
    case HF__SEEMS_DETACHED:
        words = "detached: it belongs to no process";
        break;
    }
    fprintf(out, "  seems      %s\n", words);
}

static void print_revocation(FILE *out, const char *head, const struct hf_revocation *broken)
{
    char by[HF_LABEL_MAX + 1], reason[HF_REASON_MAX + 1], time[EXPLAIN_TIME_SIZE];

    hf__copy_printable(by, sizeof by, broken->by);
    hf__copy_printable(reason, sizeof reason, broken->reason);
    fprintf(out, "%s%s%sby %s%s%s\n", head, explain_time(time, broken->at_ms),
            broken->at_ms > 0 ? " " : "", by[0] != '\0' ? by : "somebody",
            reason[0] != '\0' ? ": " : "", reason);
}

/* Of the present hold, and of one before it. */
static void print_break(FILE *out, const struct explain_story *story, bool held)
{
    if (held && story->lock.info.revocation != NULL) {
        print_revocation(out, "  broken     ", story->lock.info.revocation);
        return;
    }
    if (held)
        fputs("  broken     no\n", out);
    if (story->last_break.at_ms > 0)
        print_revocation(out, "  earlier    broken ", &story->last_break);
    else if (!story->break_known)
        fputs("  earlier    " UNSEEN " whether a hold was broken\n", out);
}

static void print_queue(FILE *out, const struct explain_story *story)
{
    uint64_t waiters = story->lock.text != NULL ? story->lock.info.waiters : 0;
    char text[DURATION_SIZE];

    if (!story->queues) {
        fputs("  waiting    cannot be seen: there is no queue here, waiters ask again and again\n",
              out);
        return;
    }
    fprintf(out, "  waiting    %" PRIu64 "%s\n", waiters,
            waiters > 0 && !story->queue_known ? ", first come, first served; " UNSEEN
                                                 " who they are"
                                               : "");
    for (size_t i = 0; i < story->queue_count; i++) {
        const struct explain_waiter *waiter = &story->queue[i];

        fprintf(out, "    %zu. %s", i + 1,
                waiter->label[0] != '\0' ? waiter->label : "an unknown client");
        if (waiter->waited_ms >= 0)
            fprintf(out, ", for %s", duration(text, waiter->waited_ms));
        fputs("\n", out);
    }
    if (story->queue_known && waiters > story->queue_count)
        fputs("    ...\n", out);
}

static void print_records(FILE *out, const struct explain_story *story)
{
    char time[EXPLAIN_TIME_SIZE];

    if (!story->records_known)
        fputs("  records    " UNSEEN "\n", out);
    else if (story->record_count == 0)
        fputs("  records    none\n", out);
    for (size_t i = 0; i < story->record_count; i++)
        fprintf(out, "  %-9s  %s, %s, %zu bytes, by token %" PRIu64 "\n", i == 0 ? "records" : "",
                story->records[i].key, explain_time(time, story->records[i].written_ms),
                story->records[i].bytes, story->records[i].token);
}

/* "and the next in the queue has it", or who else. */
static void print_heir(FILE *out, const struct explain_story *story)
{
    if (story->queue_count > 0 && story->queue[0].label[0] != '\0')
        fprintf(out, ", and %s has the lock", story->queue[0].label);
    else if (story->lock.info.waiters > 0)
        fputs(", and the next in the queue has the lock", out);
    else
        fputs(", and the lock is free", out);
}

static void print_held_next(FILE *out, const struct explain_story *story)
{
    char due[DURATION_SIZE], left[DURATION_SIZE];
    bool known = story->lock.info.remaining_ms >= 0;

    (void)duration(due, story->explained.next_ms);
    (void)duration(left, story->lock.info.remaining_ms);
    switch (story->explained.next) {
    case HF__NEXT_RENEWAL:
        fprintf(out, "The holder renews within %s. If it does not, the hold ends %s%s", due,
                known ? "in " : "at a time that this store does not tell", known ? left : "");
        print_heir(out, story);
        break;
    case HF__NEXT_END:
        fprintf(out, "Unless it is renewed, the hold ends in %s", left);
        print_heir(out, story);
        break;
    case HF__NEXT_RELEASE:
        fputs(story->lock.info.detached
                  ? "It was broken, and is detached: whoever has it hears of that at its next "
                    "renewal, and releases it"
                  : "It was broken: its holder ends its work and releases it",
              out);
        if (known)
            fprintf(out, ", in %s at the latest", left);
        print_heir(out, story);
        break;
    case HF__NEXT_NEVER:
        fputs("Nothing, ever: a key without a ttl does not end by itself. Whoever made it has to "
              "delete it, or holdfast break --now",
              out);
        break;
    case HF__NEXT_UNKNOWN:
    case HF__NEXT_GRANT:
    case HF__NEXT_WAITER:
    case HF__NEXT_QUARANTINE:
        fputs("This store does not show when it ends", out);
        break;
    }
}

static void print_next(FILE *out, const struct explain_story *story)
{
    char left[DURATION_SIZE];

    fputs("  next       ", out);
    if (story->explained.next == HF__NEXT_GRANT)
        fputs("Whoever asks first has the lock", out);
    else if (story->explained.next == HF__NEXT_WAITER)
        fputs("It is on its way to the next in the queue", out);
    else if (story->explained.next == HF__NEXT_QUARANTINE)
        fprintf(out, "The store grants nothing for another %s: %s",
                duration(left, story->quarantine_ms), story->quarantine_why);
    else
        print_held_next(out, story);
    fputs(".\n", out);
}

void explain_print(FILE *out, const struct explain_story *story)
{
    bool held = story->lock.text != NULL && story->lock.info.held;
    char name[HF_NAME_MAX + 1];

    hf__copy_printable(name, sizeof name, story->name);
    fprintf(out, "%s in %s: %s\n", name, story->store, held ? "held" : "free");
    if (held) {
        print_holder(out, story);
        print_times(out, story);
        print_seems(out, story);
    }
    print_break(out, story, held);
    print_queue(out, story);
    print_records(out, story);
    print_next(out, story);
}
