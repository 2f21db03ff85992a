/* metrics.c - the file of --metrics, in the text format of Prometheus.
 *
 * The collector may read at any moment, so the file is replaced by rename(2). Several runs of a job
 * on one machine have one file, so whoever replaces it holds its directory's flock(2), for a moment
 * only. A run that does not get it within half a second does without: somebody else has it, and a
 * figure is not worth a longer wait. */
#include "cli/events/metrics.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    FILE_MAX = 65536, /* bytes of an old file that are read */
    LABELS_SIZE = 8192,
    LOCK_TRIES = 90, /* the file is written at a start and at an end: both fit into events_close */
    LOCK_PAUSE_MS = 5
};

/* One figure of the file. */
struct figure {
    const char *name;
    const char *type;
    const char *help;
    bool total; /* what is new is added; otherwise it takes the old one's place */
    bool known; /* there is a new one */
    double value;
};

enum {
    LAST_START,
    LAST_SUCCESS,
    LAST_DURATION,
    LAST_EXIT_CODE,
    LAST_WAIT,
    STARTS,
    WAITED,
    LOST,
    SKIPPED,
    MESSAGES,
    OLDEST,
    SENT,
    RETRIED,
    DEAD,
    FIGURES
};

static int64_t number_of(const struct event_field *fields, const char *name);
static void fill_figures(struct figure figures[FIGURES], const struct metrics *metrics);
static void write_labels(char *out, const struct events_about *about);
static int lock_directory(const char *path);
static void read_old(struct figure figures[FIGURES], const char *path, const char *labels);
static bool replace(const struct figure figures[FIGURES], const char *path, const char *labels);

void metrics_init(struct metrics *metrics)
{
    *metrics = (struct metrics){.last_start_ms = METRICS_NONE,
                                .last_success_ms = METRICS_NONE,
                                .duration_ms = METRICS_NONE,
                                .exit_code = METRICS_NONE,
                                .wait_ms = METRICS_NONE,
                                .messages = METRICS_NONE,
                                .oldest_ms = METRICS_NONE};
}

static void note_relayed(struct metrics *metrics, const struct event_field *fields)
{
    metrics->relayed = true;
    metrics->messages = number_of(fields, "messages");
    metrics->oldest_ms = number_of(fields, "oldest_ms");
    metrics->sent += (uint64_t)number_of(fields, "sent");
    metrics->retried += (uint64_t)number_of(fields, "retried");
    metrics->dead += (uint64_t)number_of(fields, "dead");
}

bool metrics_note(struct metrics *metrics, enum event event, const struct event_field *fields,
                  int64_t at_ms)
{
    if (event == EVENT_ACQUIRED || event == EVENT_SKIPPED) {
        metrics->wait_ms = number_of(fields, "waited_ms");
        metrics->waited_ms += metrics->wait_ms > 0 ? (uint64_t)metrics->wait_ms : 0;
    }
    if (event == EVENT_STARTED) {
        metrics->last_start_ms = at_ms;
        metrics->starts++;
    }
    if (event == EVENT_ENDED && number_of(fields, "ran_ms") != METRICS_NONE) {
        metrics->duration_ms = number_of(fields, "ran_ms");
        metrics->exit_code = number_of(fields, "exit_code");
        if (metrics->exit_code == 0)
            metrics->last_success_ms = at_ms;
    }
    if (event == EVENT_RELAYED)
        note_relayed(metrics, fields);
    metrics->lost += event == EVENT_LOST;
    metrics->skipped += event == EVENT_SKIPPED;
    return event == EVENT_STARTED || event == EVENT_ENDED || event == EVENT_LOST ||
           event == EVENT_SKIPPED || event == EVENT_RELAYED;
}

bool metrics_write(const struct metrics *metrics, const char *path,
                   const struct events_about *about)
{
    struct figure figures[FIGURES];
    char labels[LABELS_SIZE];
    int directory, error;
    bool done;

    write_labels(labels, about);
    fill_figures(figures, metrics);
    directory = lock_directory(path);
    read_old(figures, path, labels);
    done = replace(figures, path, labels);
    error = errno;
    if (directory >= 0)
        (void)close(directory);
    errno = error;
    return done;
}

static int64_t number_of(const struct event_field *fields, const char *name)
{
    for (; fields != NULL && fields->name != NULL; fields++) {
        if (strcmp(fields->name, name) == 0)
            return fields->number;
    }
    return METRICS_NONE;
}

static void fill_figures(struct figure figures[FIGURES], const struct metrics *metrics)
{
    static const struct figure empty[FIGURES] = {
        [LAST_START] = {"holdfast_last_start_timestamp_seconds", "gauge",
                        "When the command was last started."},
        [LAST_SUCCESS] = {"holdfast_last_success_timestamp_seconds", "gauge",
                          "When a run last ended with exit code 0; 0: never."},
        [LAST_DURATION] = {"holdfast_last_duration_seconds", "gauge",
                           "How long the last run of the command took."},
        [LAST_EXIT_CODE] = {"holdfast_last_exit_code", "gauge",
                            "The exit code of holdfast after the last run of the command."},
        [LAST_WAIT] = {"holdfast_last_wait_seconds", "gauge", "The last wait for the lock."},
        [STARTS] = {"holdfast_starts_total", "counter", "Starts of the command.", true},
        [WAITED] = {"holdfast_waited_seconds_total", "counter", "Waits for the lock.", true},
        [LOST] = {"holdfast_lost_total", "counter", "Times the lock was lost.", true},
        [SKIPPED] = {"holdfast_skipped_total", "counter",
                     "Times the command was not run: it was another's turn.", true},
        [MESSAGES] = {"holdfast_outbox_messages", "gauge", "Messages in the outbox."},
        [OLDEST] = {"holdfast_outbox_oldest_seconds", "gauge",
                    "The age of the oldest message in the outbox."},
        [SENT] = {"holdfast_outbox_sent_total", "counter", "Messages that were delivered.", true},
        [RETRIED] = {"holdfast_outbox_retried_total", "counter", "Deliveries that failed.", true},
        [DEAD] = {"holdfast_outbox_dead_total", "counter", "Messages that became dead.", true}};
    const int64_t last[] = {[LAST_START] = metrics->last_start_ms,
                            [LAST_SUCCESS] = metrics->last_success_ms,
                            [LAST_DURATION] = metrics->duration_ms,
                            [LAST_EXIT_CODE] = metrics->exit_code,
                            [LAST_WAIT] = metrics->wait_ms};

    memcpy(figures, empty, sizeof empty);
    for (int i = LAST_START; i <= LAST_WAIT; i++) {
        figures[i].known = last[i] != METRICS_NONE;
        figures[i].value = (double)last[i] / (i == LAST_EXIT_CODE ? 1 : 1000);
    }
    figures[STARTS].value = (double)metrics->starts;
    figures[WAITED].value = (double)metrics->waited_ms / 1000;
    figures[LOST].value = (double)metrics->lost;
    figures[SKIPPED].value = (double)metrics->skipped;
    figures[MESSAGES].known = metrics->messages != METRICS_NONE;
    figures[MESSAGES].value = (double)metrics->messages;
    figures[OLDEST].known = metrics->oldest_ms != METRICS_NONE;
    figures[OLDEST].value = (double)metrics->oldest_ms / 1000;
    figures[SENT].value = (double)metrics->sent;
    figures[RETRIED].value = (double)metrics->retried;
    figures[DEAD].value = (double)metrics->dead;
    for (int i = SENT; i <= DEAD; i++)
        figures[i].known = metrics->relayed;
}

/* Text that grows. What does not fit is left out; there is room for all. */
struct labels {
    size_t used;
    char *text; /* of LABELS_SIZE */
};

static void add(struct labels *labels, const char *text, size_t len)
{
    if (len >= LABELS_SIZE - labels->used)
        return;
    memcpy(labels->text + labels->used, text, len);
    labels->used += len;
    labels->text[labels->used] = '\0';
}

/* The collector refuses a whole file for one byte that is not UTF-8, and knows no other escapes
 * than these two. */
static void add_value(struct labels *labels, const char *text)
{
    while (*text != '\0') {
        unsigned long point;
        size_t len = hf__utf8_read(text, &point);

        if (*text == '"' || *text == '\\')
            add(labels, "\\", 1);
        if (len == 0 || !hf__is_printable(point))
            add(labels, "\xef\xbf\xbd", 3);
        else
            add(labels, text, len);
        text += len != 0 ? len : 1;
    }
}

/* {lock="NAME",store="URL"} */
static void write_labels(char *out, const struct events_about *about)
{
    struct labels labels = {.text = out};

    _Static_assert(LABELS_SIZE > 3 * (HF_NAME_MAX + HF__URL_MAX) + 64, "three bytes for one");
    add(&labels, "{lock=\"", strlen("{lock=\""));
    add_value(&labels, about->lock);
    add(&labels, "\",store=\"", strlen("\",store=\""));
    add_value(&labels, about->store);
    add(&labels, "\"}", 2);
}

static int open_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    free(copy);
    return fd;
}

static int lock_directory(const char *path)
{
    int fd = open_directory(path);

    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
        hf__sleep_ns(LOCK_PAUSE_MS * HF__NS_PER_MS);
    return fd;
}

static void take_old(struct figure *figure, const char *text)
{
    char *end;
    double old = strtod(text, &end);

    if (end == text || old < 0 || old > 1e18)
        return;
    if (figure->total)
        figure->value += old;
    else if (!figure->known)
        figure->value = old;
    figure->known = true;
}

/* A line is "NAME{LABELS} VALUE". What is not ours, or makes no sense, is passed over. */
static void read_old(struct figure figures[FIGURES], const char *path, const char *labels)
{
    char *text = calloc(1, FILE_MAX + 1);
    char *rest = text;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = text != NULL && fd >= 0 ? read(fd, text, FILE_MAX) : -1;

    for (char *line; got > 0 && (line = strsep(&rest, "\n")) != NULL;) {
        for (int i = 0; i < FIGURES; i++) {
            size_t name_len = strlen(figures[i].name), labels_len = strlen(labels);

            if (strncmp(line, figures[i].name, name_len) == 0 &&
                strncmp(line + name_len, labels, labels_len) == 0 &&
                line[name_len + labels_len] == ' ')
                take_old(&figures[i], line + name_len + labels_len + 1);
        }
    }
    if (fd >= 0)
        (void)close(fd);
    free(text);
}

static void print(FILE *out, const struct figure figures[FIGURES], const char *labels)
{
    for (int i = 0; i < FIGURES; i++) {
        const struct figure *figure = &figures[i];
        bool always = (figure->total && i < MESSAGES) || i == LAST_SUCCESS;

        if (!figure->known && !always)
            continue;
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s%s %.15g\n", figure->name, figure->help,
                figure->name, figure->type, figure->name, labels,
                figure->known || figure->total ? figure->value : 0);
    }
}

/* The name of the new file does not end like those of files that the collector reads. */
static bool replace(const struct figure figures[FIGURES], const char *path, const char *labels)
{
    char *new_path = NULL;
    FILE *out;
    bool done;
    int fd, error;

    if (asprintf(&new_path, "%s.%d.new", path, (int)getpid()) < 0)
        return false;
    (void)unlink(new_path);
    fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    out = fd >= 0 ? fdopen(fd, "w") : NULL;
    done = out != NULL;
    if (out != NULL) {
        print(out, figures, labels);
        done = !ferror(out);
        done = fclose(out) == 0 && done;
    } else if (fd >= 0) {
        (void)close(fd);
    }
    done = done && rename(new_path, path) == 0;
    error = errno;
    if (!done)
        (void)unlink(new_path);
    free(new_path);
    errno = error;
    return done;
}
