/* stderr.c - what `run` says, without waiting for whoever reads it.
 *
 * A pipe that nobody empties, or a terminal that was stopped with Ctrl-S, blocks a write for as
 * long as it likes. The supervisor has a tree to end and a lock to give back meanwhile, so a thread
 * of its own writes. It is started with the first message: most runs say nothing. */
#include "cli/say/stderr.h"

#include "base/base.h"
#include "cli/say/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    UNSAID_MAX = 4096,   /* bytes; what a pipe takes in one piece. More is dropped */
    LAST_FLUSH_MS = 1000 /* for whoever reads, when there is nothing left to do but to end */
};

struct cli_stderr {
    struct cli_condition condition; /* of unsaid_len and closing */
    pthread_t thread;
    bool running;
    bool closing;
    size_t unsaid_len;
    char unsaid[UNSAID_MAX];
};

static void *writer_main(void *data);
static size_t write_some(const char *text, size_t len);

struct cli_stderr *cli_stderr_open(void)
{
    struct cli_stderr *writer = calloc(1, sizeof *writer);

    if (writer != NULL)
        cli_condition_init(&writer->condition);
    return writer;
}

/* If nobody listens, the thread keeps its memory, until the process ends in a moment. */
void cli_stderr_close(struct cli_stderr *writer)
{
    bool silent;

    if (writer == NULL)
        return;
    cli_stderr_flush(writer, LAST_FLUSH_MS);
    pthread_mutex_lock(&writer->condition.lock);
    silent = writer->unsaid_len == 0;
    writer->closing = true;
    pthread_cond_broadcast(&writer->condition.change);
    pthread_mutex_unlock(&writer->condition.lock);
    if (!silent)
        return;
    if (writer->running)
        pthread_join(writer->thread, NULL);
    cli_condition_clear(&writer->condition);
    free(writer);
}

void cli_stderr_say(struct cli_stderr *writer, const char *format, ...)
{
    char line[CLI_LINE_MAX];
    va_list args;

    va_start(args, format);
    cli_format_line(line, sizeof line, format, args);
    va_end(args);
    cli_stderr_put(writer, line);
}

void cli_stderr_say_now(struct cli_stderr *writer, const char *format, ...)
{
    char line[CLI_LINE_MAX];
    size_t said = 0;
    va_list args;

    va_start(args, format);
    cli_format_line(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&writer->condition.lock);
    if (!writer->running &&
        poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) > 0)
        said = write_some(line, strlen(line));
    pthread_mutex_unlock(&writer->condition.lock);
    if (line[said] != '\0')
        cli_stderr_put(writer, line + said);
}

int cli_stderr_fail(struct cli_stderr *writer, const struct hf_error *err)
{
    cli_stderr_say(writer, "%s", cli_text_of(err));
    return cli_exit_code(err->code);
}

void cli_stderr_put(struct cli_stderr *writer, const char *text)
{
    size_t len = strlen(text);

    pthread_mutex_lock(&writer->condition.lock);
    if (!writer->running)
        writer->running = cli_thread_start(&writer->thread, writer_main, writer);
    if (!writer->running) {
        /* Better than nothing: somebody may be faster than the poll, and fill the pipe. */
        if (poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) > 0)
            (void)write_some(text, len);
    } else if (len <= UNSAID_MAX - writer->unsaid_len) {
        memcpy(writer->unsaid + writer->unsaid_len, text, len);
        writer->unsaid_len += len;
        pthread_cond_broadcast(&writer->condition.change);
    }
    pthread_mutex_unlock(&writer->condition.lock);
}

void cli_stderr_flush(struct cli_stderr *writer, int64_t limit_ms)
{
    struct timespec until = cli_condition_time(limit_ms);

    pthread_mutex_lock(&writer->condition.lock);
    while (writer->unsaid_len > 0 && cli_condition_wait(&writer->condition, &until))
        continue;
    pthread_mutex_unlock(&writer->condition.lock);
}

static void *writer_main(void *data)
{
    struct cli_stderr *writer = data;
    char text[UNSAID_MAX];

    pthread_mutex_lock(&writer->condition.lock);
    for (;;) {
        size_t len;
        size_t said;

        while (writer->unsaid_len == 0 && !writer->closing)
            pthread_cond_wait(&writer->condition.change, &writer->condition.lock);
        if (writer->unsaid_len == 0)
            break;
        len = writer->unsaid_len;
        memcpy(text, writer->unsaid, len);
        pthread_mutex_unlock(&writer->condition.lock);
        said = write_some(text, len);
        pthread_mutex_lock(&writer->condition.lock);
        writer->unsaid_len -= said;
        memmove(writer->unsaid, writer->unsaid + said, writer->unsaid_len);
        pthread_cond_broadcast(&writer->condition.change);
    }
    pthread_mutex_unlock(&writer->condition.lock);
    return NULL;
}

/* How many bytes are done with: all, if they can never be written. */
static size_t write_some(const char *text, size_t len)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t said = write(STDERR_FILENO, text, len);

    if (said >= 0)
        return (size_t)said;
    if (errno == EAGAIN) /* somebody else made it non-blocking */
        (void)poll(&fd, 1, -1);
    return errno == EAGAIN || errno == EINTR ? 0 : len;
}
