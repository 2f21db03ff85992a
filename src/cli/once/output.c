/* output.c - what CMD writes: passed on as it comes, and its end kept for the record.
 *
 * One thread reads both pipes, so that the order of what was written is kept as well as two pipes
 * allow. Whoever reads our own output may be slow, and CMD waits for it as it would without us; but
 * the lock does not wait for it once CMD is gone. */
#include "cli/once/once.h"

#include "base/base.h"
#include "cli/say/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 8192,
    LAST_MS = 1000 /* for the rest to be passed on, when CMD is gone */
};

struct once_output {
    struct cli_condition condition; /* of everything below */
    pthread_t thread;
    int fds[3]; /* stdout's pipe, stderr's, and one that says stop; -1: at its end */
    int stop;   /* the other end of that */
    bool ended;
    size_t total;                   /* bytes that came */
    char ring[HF__ONCE_OUTPUT_MAX]; /* the last of them, in a circle */
    char kept[HF__ONCE_OUTPUT_MAX];
};

static void *reader(void *data);
static bool read_one(struct once_output *output, int which);
static void keep(struct once_output *output, const char *data, size_t len);
static void pass_on(int fd, const char *data, size_t len);

struct once_output *once_output_begin(struct cli_stderr *writer, int output[2])
{
    struct once_output *o = calloc(1, sizeof *o);
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    bool good = o != NULL;

    for (int i = 0; i < 3 && good; i++)
        good = pipe2(pipes[i], O_CLOEXEC) == 0;
    if (good) {
        cli_condition_init(&o->condition);
        for (int i = 0; i < 3; i++)
            o->fds[i] = pipes[i][0];
        o->stop = pipes[2][1];
        good = cli_thread_start(&o->thread, reader, o);
    }
    if (good) {
        output[0] = pipes[0][1];
        output[1] = pipes[1][1];
        return o;
    }
    cli_stderr_say(writer, "the output cannot be kept (--output): %s", strerror(errno));
    for (int i = 0; i < 6; i++) {
        if (pipes[i / 2][i % 2] >= 0)
            (void)close(pipes[i / 2][i % 2]);
    }
    free(o);
    return NULL;
}

const char *once_output_end(struct once_output *output, size_t *len)
{
    struct timespec until = cli_condition_time(LAST_MS);
    size_t total;
    size_t from;

    /* What is left in the pipes is read; a process that still has them open, a daemon that CMD
     * started for instance, is not waited for. */
    (void)close(output->stop);
    output->stop = -1;
    pthread_mutex_lock(&output->condition.lock);
    while (!output->ended && cli_condition_wait(&output->condition, &until))
        continue;
    total = output->total;
    *len = total < sizeof output->ring ? total : sizeof output->ring;
    from = total < sizeof output->ring ? 0 : total % sizeof output->ring;
    memcpy(output->kept, output->ring + from, *len - from);
    memcpy(output->kept + *len - from, output->ring, from);
    pthread_mutex_unlock(&output->condition.lock);
    return output->kept;
}

/* A thread that is stuck in a write keeps what it needs until the process ends. */
void once_output_free(struct once_output *output)
{
    bool ended;

    if (output == NULL)
        return;
    if (output->stop >= 0)
        (void)close(output->stop);
    pthread_mutex_lock(&output->condition.lock);
    ended = output->ended;
    pthread_mutex_unlock(&output->condition.lock);
    if (!ended)
        return;
    pthread_join(output->thread, NULL);
    cli_condition_clear(&output->condition);
    free(output);
}

static void *reader(void *data)
{
    enum { STOP = 2, COUNT };
    struct once_output *output = data;
    bool stop = false;

    while (output->fds[0] >= 0 || output->fds[1] >= 0) {
        struct pollfd fds[COUNT];
        int ready;

        for (int i = 0; i < COUNT; i++)
            fds[i] = (struct pollfd){.fd = output->fds[i], .events = POLLIN};
        if (stop)
            fds[STOP].fd = -1;
        ready = poll(fds, COUNT, stop ? 0 : -1);
        if (ready == 0)
            break; /* told to stop, and nothing is left */
        stop = stop || fds[STOP].revents != 0;
        for (int i = 0; i < STOP && ready > 0; i++) {
            if (fds[i].revents && !read_one(output, i)) {
                (void)close(output->fds[i]);
                output->fds[i] = -1;
            }
        }
    }
    for (int i = 0; i < COUNT; i++) {
        if (output->fds[i] >= 0)
            (void)close(output->fds[i]);
    }
    pthread_mutex_lock(&output->condition.lock);
    output->ended = true;
    pthread_cond_broadcast(&output->condition.change);
    pthread_mutex_unlock(&output->condition.lock);
    return NULL;
}

/* False at its end. */
static bool read_one(struct once_output *output, int which)
{
    char chunk[CHUNK];
    ssize_t got = read(output->fds[which], chunk, sizeof chunk);

    if (got < 0 && errno == EINTR)
        return true;
    if (got <= 0)
        return false;
    keep(output, chunk, (size_t)got);
    pass_on(STDOUT_FILENO + which, chunk, (size_t)got);
    return true;
}

static void keep(struct once_output *output, const char *data, size_t len)
{
    pthread_mutex_lock(&output->condition.lock);
    while (len > 0) {
        size_t at = output->total % sizeof output->ring;
        size_t part = sizeof output->ring - at < len ? sizeof output->ring - at : len;

        memcpy(output->ring + at, data, part);
        output->total += part;
        data += part;
        len -= part;
    }
    pthread_mutex_unlock(&output->condition.lock);
}

/* What nobody can read any more is dropped. */
static void pass_on(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, data, len);

        if (put < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (put < 0 && errno != EINTR)
            return;
        if (put > 0) {
            data += put;
            len -= (size_t)put;
        }
    }
}
