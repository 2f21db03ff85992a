/* once.c - the records of `holdfast once`, and what follows from them. */
#include "core/once.h"

#include "base/base.h"

#include <string.h>

enum {
    LINE_MAX = 512 /* bytes of a line before the output */
};

#define HEADER  "holdfast-once "
#define VERSION "1"

static const char *const states[HF__ONCE_STATES] = {"running", "done",    "failed",  "too-late",
                                                    "held",    "cleared", "settings"};

/* A text that grows, and is never too long: the sum of all its parts fits. */
struct writer {
    char *at;
};

static void put(struct writer *w, const char *text)
{
    size_t len = strlen(text);

    memcpy(w->at, text, len);
    w->at += len;
}

static void put_number(struct writer *w, const char *name, uint64_t value)
{
    char digits[24];
    char *at = digits + sizeof digits - 1;

    *at = '\0';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put(w, name);
    put(w, " ");
    put(w, at);
    put(w, "\n");
}

/* What is negative is not known. */
static void put_time(struct writer *w, const char *name, int64_t ms)
{
    if (ms >= 0)
        put_number(w, name, (uint64_t)ms);
}

static void put_text(struct writer *w, const char *name, const char *text)
{
    char clean[HF__ONCE_NOTE_MAX + 1];

    if (text[0] == '\0')
        return;
    hf__copy_printable(clean, sizeof clean, text);
    put(w, name);
    put(w, " ");
    put(w, clean);
    put(w, "\n");
}

_Static_assert((int)HF_LABEL_MAX <= (int)HF__ONCE_NOTE_MAX, "a label fits where a note does");

size_t hf__once_write(char *out, const struct hf__once_record *record)
{
    struct writer w = {.at = out};
    size_t len = record->output_len;
    const char *from = record->output;

    if (len > HF__ONCE_OUTPUT_MAX) {
        from += len - HF__ONCE_OUTPUT_MAX;
        len = HF__ONCE_OUTPUT_MAX;
    }
    put(&w, HEADER VERSION "\nstate ");
    put(&w, states[record->state]);
    put(&w, "\n");
    put_time(&w, "per", record->settings.period_ms);
    put_text(&w, "at", record->settings.at);
    put_text(&w, "tz", record->settings.zone);
    put_text(&w, "by", record->by);
    put_number(&w, "token", record->token);
    put_time(&w, "since", record->since_ms);
    put_time(&w, "took", record->took_ms);
    put_number(&w, "exit", record->exit_code);
    put_number(&w, "attempts", record->attempts);
    put_number(&w, "failures", record->failures);
    put_time(&w, "first", record->first_ms);
    put_text(&w, "note", record->note);
    put_number(&w, "output", len);
    put(&w, "\n");
    if (len > 0)
        memcpy(w.at, from, len);
    return (size_t)(w.at - out) + len;
}

const char *hf__once_state_text(enum hf__once_state state)
{
    return states[state];
}

static bool read_text(char *out, size_t size, const char *value)
{
    size_t len = strlen(value);

    if (len >= size)
        return false;
    for (const char *at = value; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    }
    memcpy(out, value, len + 1);
    return true;
}

static bool read_time(int64_t *out, const char *value)
{
    uint64_t number;

    if (!hf__parse_u64(value, &number) || number > INT64_MAX)
        return false;
    *out = (int64_t)number;
    return true;
}

static bool read_state(enum hf__once_state *out, const char *value)
{
    for (size_t i = 0; i < HF__ONCE_STATES; i++) {
        if (strcmp(value, states[i]) == 0) {
            *out = (enum hf__once_state)i;
            return true;
        }
    }
    return false;
}

static bool read_field(struct hf__once_record *record, const char *name, const char *value)
{
    const struct {
        const char *name;
        int64_t *time;
        uint64_t *number;
        char *text;
        size_t size;

    } fields[] = {
        {"per", &record->settings.period_ms, NULL, NULL, 0},
        {"at", NULL, NULL, record->settings.at, sizeof record->settings.at},
        {"tz", NULL, NULL, record->settings.zone, sizeof record->settings.zone},
        {"by", NULL, NULL, record->by, sizeof record->by},
        {"token", NULL, &record->token, NULL, 0},
        {"since", &record->since_ms, NULL, NULL, 0},
        {"took", &record->took_ms, NULL, NULL, 0},
        {"exit", NULL, &record->exit_code, NULL, 0},
        {"attempts", NULL, &record->attempts, NULL, 0},
        {"failures", NULL, &record->failures, NULL, 0},
        {"first", &record->first_ms, NULL, NULL, 0},
        {"note", NULL, NULL, record->note, sizeof record->note},
        {"output", NULL, &(uint64_t){0}, NULL, 0}, /* counted by what follows */
    };

    if (strcmp(name, "state") == 0)
        return read_state(&record->state, value);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(name, fields[i].name) != 0)
            continue;
        if (fields[i].time != NULL)
            return read_time(fields[i].time, value);
        if (fields[i].number != NULL)
            return hf__parse_u64(value, fields[i].number);
        return read_text(fields[i].text, fields[i].size, value);
    }
    return true;
}

/* One line, without its end. Returns where the next begins; NULL if there is none, or a strange
 * one. */
static const char *next_line(char line[LINE_MAX + 1], const char *text, const char *end)
{
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t len;

    if (stop == NULL || stop - text > LINE_MAX)
        return NULL;
    len = (size_t)(stop - text);
    if (memchr(text, '\0', len) != NULL)
        return NULL;
    memcpy(line, text, len);
    line[len] = '\0';
    return stop + 1;
}

enum hf__once_reading hf__once_read(struct hf__once_record *record, const char *text, size_t len)
{
    const char *end = text + len;
    char line[LINE_MAX + 1];
    bool has_state = false;

    memset(record, 0, sizeof *record);
    record->since_ms = record->took_ms = -1;
    text = next_line(line, text, end);
    if (text == NULL || strncmp(line, HEADER, strlen(HEADER)) != 0)
        return HF__ONCE_NONSENSE;
    if (strcmp(line + strlen(HEADER), VERSION) != 0)
        return HF__ONCE_NEWER;
    while ((text = next_line(line, text, end)) != NULL && line[0] != '\0') {
        char *blank = memchr(line, ' ', strlen(line));

        if (blank == NULL)
            return HF__ONCE_NONSENSE;
        *blank = '\0';
        if (!read_field(record, line, blank + 1))
            return HF__ONCE_NONSENSE;
        has_state = has_state || strcmp(line, "state") == 0;
    }
    if (text == NULL || !has_state || end - text > HF__ONCE_OUTPUT_MAX)
        return HF__ONCE_NONSENSE;
    record->output = text;
    record->output_len = (size_t)(end - text);
    return HF__ONCE_READ;
}

bool hf__once_settings_equal(const struct hf__once_settings *a, const struct hf__once_settings *b)
{
    return a->period_ms == b->period_ms && strcmp(a->at, b->at) == 0 &&
           strcmp(a->zone, b->zone) == 0;
}

/* With the lock in hand, when nothing on record keeps CMD from starting. */
static enum hf__once_next start(const struct hf__once_case *now, const struct hf__once_rules *rules)
{
    int64_t by_ms;

    if (!now->holding || __builtin_add_overflow(now->slot_start_ms, rules->start_by_ms, &by_ms))
        return HF__ONCE_GO;
    return now->now_ms <= by_ms ? HF__ONCE_GO : HF__ONCE_WRITE_LATE;
}

static enum hf__once_next after_failure(const struct hf__once_case *now,
                                        const struct hf__once_rules *rules, int64_t *until_ms)
{
    const struct hf__once_record *record = now->record;
    int64_t ended_ms;

    if (record->failures > rules->retries)
        return now->came_after ? start(now, rules) : HF__ONCE_SAY_FAILED;
    if (record->since_ms < 0 || record->took_ms < 0 || record->failures == 0 ||
        __builtin_add_overflow(record->since_ms, record->took_ms, &ended_ms) ||
        __builtin_add_overflow(ended_ms, rules->retry_after_ms, until_ms) ||
        *until_ms <= now->now_ms)
        return start(now, rules);
    /* A clock that was set back must not make it longer than it was to be. */
    if (*until_ms - now->now_ms > rules->retry_after_ms)
        *until_ms = now->now_ms + rules->retry_after_ms;
    return HF__ONCE_SLEEP;
}

enum hf__once_next hf__once_decide(const struct hf__once_case *now,
                                   const struct hf__once_rules *rules, int64_t *until_ms)
{
    *until_ms = now->now_ms;
    if (now->record == NULL)
        return start(now, rules);
    switch (now->record->state) {
    case HF__ONCE_DONE:
        return HF__ONCE_SAY_DONE;
    case HF__ONCE_TOO_LATE:
        return HF__ONCE_SAY_LATE;
    case HF__ONCE_HELD:
        return HF__ONCE_SAY_HELD;
    case HF__ONCE_FAILED:
        return after_failure(now, rules, until_ms);
    case HF__ONCE_RUNNING:
        /* Whoever wrote that no longer has the lock, if we do. */
        if (now->holding && rules->hold_crashed && !now->not_started)
            return HF__ONCE_WRITE_HELD;
        return start(now, rules);
    case HF__ONCE_CLEARED:
    case HF__ONCE_SETTINGS:
        break;
    }
    return start(now, rules);
}

struct hf__once_record hf__once_begun(const struct hf__once_record *before,
                                      const struct hf__once_settings *settings)
{
    struct hf__once_record record = {
        .state = HF__ONCE_RUNNING, .settings = *settings, .took_ms = -1, .attempts = 1};

    if (before == NULL)
        return record;
    if (before->attempts < UINT64_MAX)
        record.attempts = before->attempts + 1;
    if (before->state != HF__ONCE_CLEARED)
        record.failures = before->failures;
    return record;
}
