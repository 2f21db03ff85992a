/* line.h - an event as a line of JSON. */
#ifndef HF_CLI_EVENTS_LINE_H
#define HF_CLI_EVENTS_LINE_H

#include "cli/events/events.h"

/* With a newline before it, in case the last line was torn, it is what a pipe takes in one piece:
 * so many processes can share a pipe. */
enum { EVENTS_LINE_MAX = 4095 };

struct events_line {
    size_t used;
    char text[EVENTS_LINE_MAX]; /* ends with a newline, not with a NUL */
};

/* Who tells an event. */
struct events_about {
    const char *lock;
    const char *store; /* "": not open yet */
    const char *label; /* "": not known yet */
    uint64_t token;    /* 0: none */
};

/* Writes the line for an event that happened at_ms after 1970. Long texts are cut. */
void events_line_write(struct events_line *line, const struct events_about *about, int64_t at_ms,
                       enum event event, const struct event_field *fields);

#endif /* HF_CLI_EVENTS_LINE_H */
