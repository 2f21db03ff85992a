/* line.c - an event as a line of JSON.
 *
 * Every text has a limit of its own, so that the line fits whatever names and labels are. */
#include "cli/events/line.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
    LOCK_MAX = 3 * HF_NAME_MAX, /* bytes as written: no name is longer */
    STORE_MAX = 1000,
    TEXT_MAX = 500,
    FIELD_ROOM = TEXT_MAX + 60, /* for any field, and the end of the line */
    TIME_SIZE = 40
};

static const char *const words[] = {
#define X(symbol, word) [symbol] = (word),
    EVENTS_MAP(X)
#undef X
};

static void put(struct events_line *line, const char *text, size_t len);
static void put_text(struct events_line *line, const char *name, const char *text, size_t most);
static void put_number(struct events_line *line, const char *name, int64_t number);
static void put_time(struct events_line *line, int64_t at_ms);

void events_line_write(struct events_line *line, const struct events_about *about, int64_t at_ms,
                       enum event event, const struct event_field *fields)
{
    line->used = 0;
    put(line, "{\"v\": 1", strlen("{\"v\": 1")); /* the version of the format */
    put_time(line, at_ms);
    put_text(line, "event", words[event], TEXT_MAX);
    put_text(line, "lock", about->lock, LOCK_MAX);
    if (about->store[0] != '\0')
        put_text(line, "store", about->store, STORE_MAX);
    if (about->label[0] != '\0')
        put_text(line, "label", about->label, TEXT_MAX);
    if (about->token != 0)
        put_number(line, "token", (int64_t)about->token);
    for (; fields != NULL && fields->name != NULL && line->used + FIELD_ROOM < sizeof line->text;
         fields++) {
        if (fields->text != NULL)
            put_text(line, fields->name, fields->text, TEXT_MAX);
        else
            put_number(line, fields->name, fields->number);
    }
    put(line, "}\n", 2);
}

static void put(struct events_line *line, const char *text, size_t len)
{
    if (len > sizeof line->text - line->used)
        return; /* never, with the limits above */
    memcpy(line->text + line->used, text, len);
    line->used += len;
}

static void put_name(struct events_line *line, const char *name)
{
    put(line, ", \"", 3);
    put(line, name, strlen(name));
    put(line, "\": ", 3);
}

/* Cut between two characters. */
static void put_text(struct events_line *line, const char *name, const char *text, size_t most)
{
    char one[CLI_JSON_CHAR_SIZE];
    size_t written = 0;

    put_name(line, name);
    put(line, "\"", 1);
    while (*text != '\0') {
        size_t len = cli_json_char(one, &text);

        if (written + len > most)
            break;
        put(line, one, len);
        written += len;
    }
    put(line, "\"", 1);
}

static void put_number(struct events_line *line, const char *name, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, number);

    put_name(line, name);
    put(line, text, (size_t)len);
}

static void put_time(struct events_line *line, int64_t at_ms)
{
    char date[TIME_SIZE], text[2 * TIME_SIZE];
    time_t seconds = at_ms / 1000;
    struct tm utc;

    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        return;
    (void)snprintf(text, sizeof text, "%s.%03dZ", date, (int)(at_ms % 1000));
    put_text(line, "at", text, TEXT_MAX);
}
