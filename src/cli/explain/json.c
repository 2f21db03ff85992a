/* json.c - the story of a lock as one JSON object; docs/explain.schema.json describes it. What
 * cannot be seen is null. */
#include "cli/explain/explain.h"

#include "cli/cli.h"

#include <inttypes.h>

static void number(FILE *out, const char *key, bool known, int64_t value)
{
    if (known)
        fprintf(out, ", \"%s\": %" PRId64, key, value);
    else
        fprintf(out, ", \"%s\": null", key);
}

static void text(FILE *out, const char *key, const char *value)
{
    fprintf(out, ", \"%s\": ", key);
    if (value[0] != '\0')
        cli_json_string(out, value);
    else
        fputs("null", out);
}

static void time_text(FILE *out, const char *key, int64_t ms)
{
    char time[EXPLAIN_TIME_SIZE];

    text(out, key, explain_time(time, ms));
}

static void json_holder(FILE *out, const struct explain_story *story)
{
    static const char *const seems[] = {[HF__SEEMS_NOBODY] = "",
                                        [HF__SEEMS_ALIVE] = "alive",
                                        [HF__SEEMS_LATE] = "late",
                                        [HF__SEEMS_UNKNOWN] = "unknown",
                                        [HF__SEEMS_DETACHED] = "detached"};
    const struct hf_lock_info *info = &story->lock.info;

    if (story->lock.text == NULL || !info->held) {
        fputs(", \"holder\": null", out);
        return;
    }
    fprintf(out, ", \"holder\": {\"seems\": \"%s\"", seems[story->explained.seems]);
    text(out, "label", info->label);
    time_text(out, "since", explain_since_ms(story));
    number(out, "age_ms", info->age_ms >= 0, info->age_ms);
    number(out, "token", info->token != 0, (int64_t)info->token);
    time_text(out, "token_time", explain_token_ms(story));
    time_text(out, "renewed", info->renewed_ms);
    number(out, "ttl_ms", info->ttl_ms > 0, info->ttl_ms);
    number(out, "remaining_ms", info->remaining_ms >= 0, info->remaining_ms);
    fprintf(out, ", \"endless\": %s, \"detached\": %s, \"foreign\": %s}",
            info->endless ? "true" : "false", info->detached ? "true" : "false",
            info->foreign ? "true" : "false");
}

static void json_revocation(FILE *out, const char *key, const struct hf_revocation *broken)
{
    char time[EXPLAIN_TIME_SIZE];

    fprintf(out, ", \"%s\": ", key);
    if (broken == NULL) {
        fputs("null", out);
        return;
    }
    fputs("{\"at\": ", out);
    if (broken->at_ms > 0)
        fprintf(out, "\"%s\"", explain_time(time, broken->at_ms));
    else
        fputs("null", out);
    text(out, "by", broken->by);
    text(out, "reason", broken->reason);
    fputs("}", out);
}

/* Of the present hold, and the last one that is known of. */
static void json_break(FILE *out, const struct explain_story *story)
{
    bool held = story->lock.text != NULL && story->lock.info.held;
    const struct hf_revocation *broken = held ? story->lock.info.revocation : NULL;

    json_revocation(out, "broken", broken);
    json_revocation(out, "last_break", story->last_break.at_ms > 0 ? &story->last_break : broken);
}

static void json_queue(FILE *out, const struct explain_story *story)
{
    number(out, "waiters", story->queues,
           story->lock.text != NULL ? (int64_t)story->lock.info.waiters : 0);
    fputs(", \"queue\": ", out);
    if (!story->queue_known) {
        fputs("null", out);
        return;
    }
    fputs("[", out);
    for (size_t i = 0; i < story->queue_count; i++) {
        fprintf(out, "%s{\"place\": %zu", i > 0 ? ", " : "", i + 1);
        text(out, "label", story->queue[i].label);
        number(out, "waited_ms", story->queue[i].waited_ms >= 0, story->queue[i].waited_ms);
        fputs("}", out);
    }
    fputs("]", out);
}

static void json_records(FILE *out, const struct explain_story *story)
{
    if (!story->records_known) {
        fputs(", \"records\": null", out);
        return;
    }
    fputs(", \"records\": [", out);
    for (size_t i = 0; i < story->record_count; i++) {
        fprintf(out, "%s{\"key\": ", i > 0 ? ", " : "");
        cli_json_string(out, story->records[i].key);
        time_text(out, "written", story->records[i].written_ms);
        fprintf(out, ", \"bytes\": %zu, \"token\": %" PRIu64 "}", story->records[i].bytes,
                story->records[i].token);
    }
    fputs("]", out);
}

void explain_json(FILE *out, const struct explain_story *story)
{
    static const char *const next[] = {[HF__NEXT_GRANT] = "grant",
                                       [HF__NEXT_WAITER] = "waiter",
                                       [HF__NEXT_QUARANTINE] = "quarantine",
                                       [HF__NEXT_RENEWAL] = "renewal",
                                       [HF__NEXT_END] = "end",
                                       [HF__NEXT_RELEASE] = "release",
                                       [HF__NEXT_NEVER] = "never",
                                       [HF__NEXT_UNKNOWN] = "unknown"};
    char time[EXPLAIN_TIME_SIZE];

    fputs("{\"name\": ", out);
    cli_json_string(out, story->name);
    fputs(", \"store\": ", out);
    cli_json_string(out, story->store);
    fprintf(out, ", \"at\": \"%s\", \"held\": %s", explain_time(time, story->at_us / 1000),
            story->lock.text != NULL && story->lock.info.held ? "true" : "false");
    json_holder(out, story);
    json_break(out, story);
    json_queue(out, story);
    json_records(out, story);
    if (story->quarantine) {
        fprintf(out, ", \"quarantine\": {\"remaining_ms\": %" PRId64, story->quarantine_ms);
        text(out, "reason", story->quarantine_why);
        fputs("}", out);
    } else {
        fputs(", \"quarantine\": null", out);
    }
    fprintf(out, ", \"next\": {\"what\": \"%s\"", next[story->explained.next]);
    number(out, "in_ms", story->explained.next_ms >= 0, story->explained.next_ms);
    fputs("}}\n", out);
}
