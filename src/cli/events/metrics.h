/* metrics.h - the file of --metrics, in the text format of Prometheus.
 *
 * What happened since the file was written last is noted here, and added to what the file says:
 * the totals outlive the processes. Pure, but for metrics_write. */
#ifndef HF_CLI_EVENTS_METRICS_H
#define HF_CLI_EVENTS_METRICS_H

#include "cli/events/line.h"

struct metrics {
    /* Of the last run; METRICS_NONE: has not happened since the file was written. Times in ms since
     * 1970. */
    int64_t last_start_ms;
    int64_t last_success_ms;
    int64_t duration_ms;
    int64_t exit_code;
    int64_t wait_ms;
    /* Since the file was written. */
    uint64_t starts;
    uint64_t waited_ms;
    uint64_t lost;
    uint64_t skipped;
    /* Of the relay of an outbox. */
    int64_t messages; /* that are there; METRICS_NONE: not known */
    int64_t oldest_ms;
    bool relayed; /* these three are known */
    uint64_t sent;
    uint64_t retried;
    uint64_t dead;
};

enum { METRICS_NONE = -1 };

void metrics_init(struct metrics *metrics);
/* Takes an event into account. True if the file is to be written. */
bool metrics_note(struct metrics *metrics, enum event event, const struct event_field *fields,
                  int64_t at_ms);
/* Adds what was noted to the file, which is replaced in one step. False, with errno: it is as it
 * was. */
bool metrics_write(const struct metrics *metrics, const char *path,
                   const struct events_about *about);

#endif /* HF_CLI_EVENTS_METRICS_H */
