/* once_text.c - records in words. */
#include "base/base.h"
#include "client/once.h"
#include "core/civil.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHEN_SIZE = 96, WHO_SIZE = HF_LABEL_MAX + 32, MORE_SIZE = HF__ONCE_NOTE_MAX + 96 };

char *hf__once_time(char out[HF__ONCE_TIME_SIZE], int64_t ms)
{
    int64_t at_s;
    struct hf__date date;
    int of_day;

    if (ms < 0 || ms > HF__CLOCK_MAX_MS) {
        (void)snprintf(out, HF__ONCE_TIME_SIZE, "an unknown time");
        return out;
    }
    at_s = ms / 1000;
    date = hf__date_of(at_s / HF__DAY_S);
    of_day = (int)(at_s % HF__DAY_S);
    (void)snprintf(out, HF__ONCE_TIME_SIZE, "%04d-%02d-%02d %02d:%02d:%02d UTC", (int)date.year,
                   date.month, date.day, of_day / 3600, of_day / 60 % 60, of_day % 60);
    return out;
}

/* ", began 2026-11-17 03:00:02 UTC, took 4m12s" */
static void describe_when(char *out, size_t size, const struct hf__once_record *record)
{
    char began[HF__ONCE_TIME_SIZE], took[32];
    size_t used;

    out[0] = '\0';
    if (record->since_ms < 0)
        return;
    used = (size_t)snprintf(out, size, ", began %s", hf__once_time(began, record->since_ms));
    if (record->took_ms >= 0 && used < size)
        (void)snprintf(out + used, size - used, ", took %s",
                       hf__format_duration(took, sizeof took, record->took_ms));
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void describe(char *out, size_t size, const struct hf__once_record *record)
{
    char when[WHEN_SIZE];
    char began[HF__ONCE_TIME_SIZE];
    const char *by = record->by[0] != '\0' ? record->by : "somebody";

    describe_when(when, sizeof when, record);
    (void)hf__once_time(began, record->since_ms);
    switch (record->state) {
    case HF__ONCE_RUNNING:
        (void)snprintf(out, size, "%s started it at %s, and has not finished it", by, began);
        break;
    case HF__ONCE_DONE:
        (void)snprintf(out, size, "done by %s%s", by, when);
        break;
    case HF__ONCE_FAILED:
        (void)snprintf(out, size,
                       "failed with exit code %" PRIu64 ", %" PRIu64 " attempt%s, the last by %s%s",
                       record->exit_code, record->attempts, plural(record->attempts), by, when);
        break;
    case HF__ONCE_TOO_LATE:
        (void)snprintf(out, size,
                       "not run: at %s it was too late to start it (--start-by), according to %s",
                       began, by);
        break;
    case HF__ONCE_HELD:
        (void)snprintf(out, size, "held: %s started it at %s and never finished it", by, began);
        break;
    case HF__ONCE_CLEARED:
        (void)snprintf(out, size, "cleared by %s, to be run again: %s", by, record->note);
        break;
    case HF__ONCE_SETTINGS:
        (void)snprintf(out, size, "no slot");
        break;
    }
}

void hf__once_sentence(char *out, size_t size, const char *key, const char *slot,
                       const struct hf__once_record *record)
{
    char what[WHO_SIZE + WHEN_SIZE + MORE_SIZE] = "not run yet";
    bool ever = strcmp(slot, HF__SLOT_EVER) == 0;

    if (record != NULL)
        describe(what, sizeof what, record);
    (void)snprintf(out, size, "\"%s\"%s%s: %s", key, ever ? "" : ", slot ", ever ? "" : slot, what);
}

char *hf__once_settings_text(char *out, size_t size, const struct hf__once_settings *settings)
{
    char per[32];

    if (settings->period_ms == 0)
        (void)snprintf(out, size, "no --per");
    else
        (void)snprintf(out, size, "--per %s%s%s%s%s",
                       hf__format_duration(per, sizeof per, settings->period_ms),
                       settings->at[0] != '\0' ? " --at " : "", settings->at,
                       settings->zone[0] != '\0' ? " --tz " : "", settings->zone);
    return out;
}
