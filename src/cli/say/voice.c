/* voice.c - what `run` says, without waiting for whoever reads it.
 *
 * A pipe that nobody empties, or a terminal that was stopped with Ctrl-S, blocks a write for as
 * long as it likes. The supervisor has a tree to end and a lock to give back meanwhile, so a thread
 * of its own writes. It is started with the first message: most runs say nothing. */
#include "cli/say/voice.h"

#include "base/base.h"
#include "cli/say/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    UNSAID_MAX = 4096,      /* bytes; what a pipe takes in one piece. More is dropped         */
    LAST_PATIENCE_MS = 1000 /* for whoever reads, when there is nothing left to do but to end */
};

struct run_voice {
    struct run_bell bell; /* rings for unsaid_len and closing */
    pthread_t thread;
    bool running;
    bool closing;
    size_t unsaid_len;
    char unsaid[UNSAID_MAX];
};

static void *speaker(void *data);
static size_t write_some(const char *text, size_t len);

struct run_voice *run_voice_open(void)
{
    struct run_voice *voice = calloc(1, sizeof *voice);
    if (voice)
        run_bell_init(&voice->bell);
    return voice;
}

/* If nobody listens, the thread keeps its memory, until the process ends in a moment. */
void run_voice_close(struct run_voice *voice)
{
    if (!voice)
        return;
    run_voice_flush(voice, LAST_PATIENCE_MS);
    pthread_mutex_lock(&voice->bell.lock);
    bool silent = voice->unsaid_len == 0;
    voice->closing = true;
    pthread_cond_broadcast(&voice->bell.change);
    pthread_mutex_unlock(&voice->bell.lock);
    if (!silent)
        return;
    if (voice->running)
        pthread_join(voice->thread, NULL);
    run_bell_clear(&voice->bell);
    free(voice);
}

void run_say(struct run_voice *voice, const char *format, ...)
{
    char line[CLI_LINE_MAX];
    va_list args;
    va_start(args, format);
    cli_format_line(line, sizeof line, format, args);
    va_end(args);
    run_voice_put(voice, line);
}

int run_fail(struct run_voice *voice, const struct hf_error *err)
{
    run_say(voice, "%s", cli_text_of(err));
    return cli_exit_code(err->code);
}

void run_voice_put(struct run_voice *voice, const char *text)
{
    size_t len = strlen(text);
    pthread_mutex_lock(&voice->bell.lock);
    if (!voice->running)
        voice->running = run_thread_start(&voice->thread, speaker, voice);
    if (!voice->running) {
        /* Better than nothing: somebody may be faster than the poll, and fill the pipe. */
        if (poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) > 0)
            write_some(text, len);
    } else if (len <= UNSAID_MAX - voice->unsaid_len) {
        memcpy(voice->unsaid + voice->unsaid_len, text, len);
        voice->unsaid_len += len;
        pthread_cond_broadcast(&voice->bell.change);
    }
    pthread_mutex_unlock(&voice->bell.lock);
}

void run_voice_flush(struct run_voice *voice, int64_t patience_ms)
{
    struct timespec until = run_bell_time(patience_ms);
    pthread_mutex_lock(&voice->bell.lock);
    while (voice->unsaid_len > 0 && run_bell_wait(&voice->bell, &until))
        continue;
    pthread_mutex_unlock(&voice->bell.lock);
}

static void *speaker(void *data)
{
    struct run_voice *voice = data;
    char text[UNSAID_MAX];
    pthread_mutex_lock(&voice->bell.lock);
    for (;;) {
        while (voice->unsaid_len == 0 && !voice->closing)
            pthread_cond_wait(&voice->bell.change, &voice->bell.lock);
        if (voice->unsaid_len == 0)
            break;
        size_t len = voice->unsaid_len;
        memcpy(text, voice->unsaid, len);
        pthread_mutex_unlock(&voice->bell.lock);
        size_t said = write_some(text, len);
        pthread_mutex_lock(&voice->bell.lock);
        voice->unsaid_len -= said;
        memmove(voice->unsaid, voice->unsaid + said, voice->unsaid_len);
        pthread_cond_broadcast(&voice->bell.change);
    }
    pthread_mutex_unlock(&voice->bell.lock);
    return NULL;
}

/* How much of it is done with: what cannot be written, now or ever, is. */
static size_t write_some(const char *text, size_t len)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t said = write(STDERR_FILENO, text, len);
    if (said >= 0)
        return (size_t)said;
    if (errno == EAGAIN) /* somebody else made it non-blocking */
        poll(&fd, 1, -1);
    return errno == EAGAIN || errno == EINTR ? 0 : len;
}
