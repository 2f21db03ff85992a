/* events.h - what `run`, `once`, `elect` and `outbox relay` tell other programs: --events and
 * --metrics.
 *
 * An event is told once, with events_say. It becomes a line of JSON in the file of --events, and
 * is counted in the file of --metrics. A thread of its own writes both, so that neither a full disk
 * nor a reader that has left holds the job up: what cannot be written is dropped, and that is said
 * once on stderr.
 *
 * All functions take NULL for events, which is what there is without these options, and may be
 * called from any thread. */
#ifndef HF_CLI_EVENTS_EVENTS_H
#define HF_CLI_EVENTS_EVENTS_H

#include "cli/cli.h"
#include "cli/say/stderr.h"

/* X(symbol, word): the man page holdfast-run(1) says what each of them means. */
#define EVENTS_MAP(X)                                                                              \
    X(EVENT_WAITING, "waiting")                                                                    \
    X(EVENT_ACQUIRED, "acquired")                                                                  \
    X(EVENT_STARTED, "started")                                                                    \
    X(EVENT_RENEWED_LATE, "renewed_late")                                                          \
    X(EVENT_LOST, "lost")                                                                          \
    X(EVENT_EXITED, "exited")                                                                      \
    X(EVENT_RELEASED, "released")                                                                  \
    X(EVENT_SKIPPED, "skipped")                                                                    \
    X(EVENT_FAILED, "failed")                                                                      \
    X(EVENT_ENDED, "ended")                                                                        \
    X(EVENT_BACKING_OFF, "backing_off")                                                            \
    X(EVENT_RELAYED, "relayed")                                                                    \
    X(EVENT_DROPPED, "dropped")

enum event {
#define X(symbol, word) symbol,
    EVENTS_MAP(X)
#undef X
};

/* One field of an event, beside those that all have. */
struct event_field {
    const char *name; /* as it is written; a list ends with NULL */
    const char *text; /* NULL: a number */
    int64_t number;
};

/* Fields of the lists below. */
#define EVENT_NUMBER(field, value)                                                                 \
    {                                                                                              \
        .name = (field), .number = (value)                                                         \
    }
#define EVENT_TEXT(field, value)                                                                   \
    {                                                                                              \
        .name = (field), .text = (value)                                                           \
    }

/* What the command line says. */
struct events_options {
    const char *events;  /* a file, "-": standard output, NULL: none */
    const char *metrics; /* a file, NULL: none */
};

/* Their lines in the table of a command. */
#define EVENTS_OPTIONS(given)                                                                      \
    {0,                                                                                            \
     "events",                                                                                     \
     CLI_TEXT,                                                                                     \
     "FILE",                                                                                       \
     "append a line of JSON for each event; -: to standard output",                                \
     NULL,                                                                                         \
     &(given)->events,                                                                             \
     NULL},                                                                                        \
    {                                                                                              \
        0, "metrics", CLI_TEXT, "FILE.prom", "keep figures for Prometheus in this file", NULL,     \
            &(given)->metrics, NULL                                                                \
    }

/* 0, or EXIT_HF_USAGE after a message. */
int events_check(const struct cli_command *command, const struct events_options *given);

struct events;

/* Events about a lock. NULL if none were asked for, or, after a message, if memory is short. The
 * strings have to live until events_close. */
struct events *events_open(const struct events_options *given, const char *lock,
                           struct cli_stderr *writer);
/* Waits a moment until everything is written. If it is not by then, the process has to end. */
void events_close(struct events *events);

/* What every event says from now on. The texts are copied; the token is 0 while nothing is held. */
void events_set_lock(struct events *events, const char *name);
void events_set_store(struct events *events, const char *url);
void events_set_label(struct events *events, const char *label);
void events_set_token(struct events *events, uint64_t token);

/* Tells an event. fields: NULL, or a list whose last name is NULL. Does not block. */
void events_say(struct events *events, enum event event, const struct event_field *fields);
#define EVENTS_SAY(events, event, ...)                                                             \
    events_say(events, event, (const struct event_field[]){__VA_ARGS__, {.name = NULL}})

#endif /* HF_CLI_EVENTS_EVENTS_H */
