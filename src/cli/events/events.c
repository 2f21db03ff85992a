/* events.c - events on their way from the job to a file.
 *
 * Lines wait in a queue for the thread that writes them; when that is full they are dropped, and
 * counted, and the next one that gets through says how many. */
#include "cli/events/events.h"

#include "base/base.h"
#include "cli/events/line.h"
#include "cli/events/metrics.h"
#include "cli/events/outlet.h"
#include "cli/say/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_MAX = 65536,   /* bytes; more is dropped */
    LAST_WAIT_MS = 1000, /* for whoever reads, when there is nothing left to do but to end */
    STORE_SIZE = HF__URL_MAX + 1
};

struct events {
    struct cli_condition condition; /* of all below; nobody who holds it writes anywhere */
    pthread_t thread;
    struct cli_stderr *writer;
    const char *metrics_path; /* NULL: none */
    char lock[HF_NAME_MAX + 1];
    char store[STORE_SIZE];
    char label[HF_LABEL_MAX + 1];
    uint64_t token;
    bool running;
    bool closing;
    bool said_events; /* that there is no writing to the file */
    bool said_metrics;
    bool metrics_due;
    struct metrics metrics;
    uint64_t dropped; /* lines; the next one tells */
    size_t used;
    char queue[QUEUE_MAX];

    struct outlet outlet; /* the thread's; path NULL: no events were asked for */
};

static void *writer_main(void *data);
static void put_line(struct events *events, enum event event, const struct event_field *fields,
                     int64_t at_ms);
static void give_up(struct events *events, bool metrics, int error);

int events_check(const struct cli_command *command, const struct events_options *given)
{
    if (given->events != NULL && given->events[0] == '\0')
        return cli_usage_error(command, "--events: the name of the file is empty");
    if (given->metrics != NULL && (given->metrics[0] == '\0' || strcmp(given->metrics, "-") == 0))
        return cli_usage_error(command, "--metrics: the name of a file is needed");
    return 0;
}

struct events *events_open(const struct events_options *given, const char *lock,
                           struct cli_stderr *writer)
{
    struct events *events;

    if (given->events == NULL && given->metrics == NULL)
        return NULL;
    events = calloc(1, sizeof *events);
    if (events == NULL) {
        cli_stderr_say(writer, "out of memory for events; continuing without them");
        return NULL;
    }
    events->writer = writer;
    (void)snprintf(events->lock, sizeof events->lock, "%s", lock);
    events->metrics_path = given->metrics;
    events->outlet = (struct outlet){.path = given->events, .fd = -1};
    metrics_init(&events->metrics);
    cli_condition_init(&events->condition);
    events->running = cli_thread_start(&events->thread, writer_main, events);
    if (events->running)
        return events;
    cli_stderr_say(writer, "no thread for events can be started; continuing without them");
    cli_condition_clear(&events->condition);
    free(events);
    return NULL;
}

/* If the file takes nothing, the thread keeps its memory, until the process ends in a moment. */
void events_close(struct events *events)
{
    struct timespec until = cli_condition_time(LAST_WAIT_MS);
    bool done;

    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    events->closing = true;
    pthread_cond_broadcast(&events->condition.change);
    while (events->running && cli_condition_wait(&events->condition, &until))
        continue;
    done = !events->running;
    pthread_mutex_unlock(&events->condition.lock);
    if (!done) {
        cli_stderr_say(events->writer, "not all events could be written within a second");
        return;
    }
    pthread_join(events->thread, NULL);
    outlet_close(&events->outlet);
    cli_condition_clear(&events->condition);
    free(events);
}

void events_set_lock(struct events *events, const char *name)
{
    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    (void)snprintf(events->lock, sizeof events->lock, "%s", name);
    pthread_mutex_unlock(&events->condition.lock);
}

void events_set_store(struct events *events, const char *url)
{
    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    (void)snprintf(events->store, sizeof events->store, "%s", url);
    pthread_mutex_unlock(&events->condition.lock);
}

void events_set_label(struct events *events, const char *label)
{
    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    (void)snprintf(events->label, sizeof events->label, "%s", label);
    pthread_mutex_unlock(&events->condition.lock);
}

void events_set_token(struct events *events, uint64_t token)
{
    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    events->token = token;
    pthread_mutex_unlock(&events->condition.lock);
}

void events_say(struct events *events, enum event event, const struct event_field *fields)
{
    int64_t at_ms = hf__wall_us() / 1000;

    if (events == NULL)
        return;
    pthread_mutex_lock(&events->condition.lock);
    if (events->outlet.path != NULL)
        put_line(events, event, fields, at_ms);
    if (metrics_note(&events->metrics, event, fields, at_ms) && events->metrics_path != NULL)
        events->metrics_due = true;
    pthread_cond_broadcast(&events->condition.change);
    pthread_mutex_unlock(&events->condition.lock);
}

static struct events_about about(const struct events *events)
{
    return (struct events_about){.lock = events->lock,
                                 .store = events->store,
                                 .label = events->label,
                                 .token = events->token};
}

static bool enqueue(struct events *events, const struct events_line *line)
{
    if (line->used > sizeof events->queue - events->used)
        return false;
    memcpy(events->queue + events->used, line->text, line->used);
    events->used += line->used;
    return true;
}

static void put_line(struct events *events, enum event event, const struct event_field *fields,
                     int64_t at_ms)
{
    struct events_line line;
    struct events_about who = about(events);

    if (events->dropped > 0) {
        const struct event_field count[] = {EVENT_NUMBER("count", (int64_t)events->dropped),
                                            {.name = NULL}};

        events_line_write(&line, &who, at_ms, EVENT_DROPPED, count);
        if (enqueue(events, &line))
            events->dropped = 0;
    }
    events_line_write(&line, &who, at_ms, event, fields);
    if (!enqueue(events, &line)) {
        events->dropped++;
        give_up(events, false, EAGAIN);
    }
}

/* Says once for each file that it cannot be written. Nothing of that blocks. */
static void give_up(struct events *events, bool metrics, int error)
{
    bool *said = metrics ? &events->said_metrics : &events->said_events;

    if (*said)
        return;
    *said = true;
    if (metrics)
        cli_stderr_say(events->writer, "--metrics %s cannot be written: %s", events->metrics_path,
                       strerror(error));
    else
        cli_stderr_say(events->writer, "--events %s cannot be written, so events are missing: %s",
                       events->outlet.path,
                       error == EAGAIN ? "whoever reads it is too slow" : strerror(error));
}

/* With the lock held, which is let go meanwhile. A line that nobody takes yet stays. */
static void write_line(struct events *events)
{
    char line[EVENTS_LINE_MAX];
    const char *end = memchr(events->queue, '\n', events->used);
    size_t len = (size_t)(end - events->queue) + 1;
    bool done;
    int error;

    memcpy(line, events->queue, len);
    pthread_mutex_unlock(&events->condition.lock);
    done = outlet_write(&events->outlet, line, len);
    error = errno;
    pthread_mutex_lock(&events->condition.lock);
    if (!done && error == EAGAIN)
        return;
    events->used -= len;
    memmove(events->queue, events->queue + len, events->used);
    if (!done) {
        events->dropped++;
        give_up(events, false, error);
    }
}

/* The same. What could not be written is lost, as the lines are. */
static void write_metrics(struct events *events)
{
    char store[STORE_SIZE];
    struct metrics noted = events->metrics;
    struct events_about who = about(events);
    bool done;
    int error;

    memcpy(store, events->store, sizeof store);
    who.store = store;
    metrics_init(&events->metrics);
    events->metrics_due = false;
    pthread_mutex_unlock(&events->condition.lock);
    done = metrics_write(&noted, events->metrics_path, &who);
    error = errno;
    pthread_mutex_lock(&events->condition.lock);
    if (!done)
        give_up(events, true, error);
}

static void *writer_main(void *data)
{
    struct events *events = data;

    pthread_mutex_lock(&events->condition.lock);
    for (;;) {
        while (events->used == 0 && !events->metrics_due && !events->closing)
            pthread_cond_wait(&events->condition.change, &events->condition.lock);
        if (events->metrics_due)
            write_metrics(events);
        else if (events->used > 0)
            write_line(events);
        else
            break;
    }
    events->running = false;
    pthread_cond_broadcast(&events->condition.change);
    pthread_mutex_unlock(&events->condition.lock);
    return NULL;
}
