/* stream.c - answers that come line by line. One thread writes for all who wait; it never blocks: a
 * client that leaves so much unread that a line has no room is cut off, and so leaves the queue. */
#include "serve/stream.h"

#include "serve/answer.h"
#include "serve/wire.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EVERY_NS (2 * HF__NS_PER_S) /* proxies that are impatient give up after 3s */

struct streams {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool closing;
    struct stream *first;
    struct stream *last;
};

static void append(struct streams *streams, struct stream *stream)
{
    stream->due_ns = hf__now_ns() + EVERY_NS;
    stream->next = NULL;
    stream->prev = streams->last;
    *(streams->last != NULL ? &streams->last->next : &streams->first) = stream;
    streams->last = stream;
}

static void take_out(struct streams *streams, struct stream *stream)
{
    *(stream->prev != NULL ? &stream->prev->next : &streams->first) = stream->next;
    *(stream->next != NULL ? &stream->next->prev : &streams->last) = stream->prev;
}

static void write_waiting(const struct stream *stream)
{
    static const char line[] = "{\"status\": \"waiting\"}\n";
    static const char chunk[] = "16\r\n{\"status\": \"waiting\"}\n\r\n";
    const char *data = stream->chunked ? chunk : line;
    ssize_t len = (ssize_t)strlen(data);
    _Static_assert(sizeof line - 1 == 0x16, "as the chunk says");

    if (send(stream->fd, data, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len)
        (void)shutdown(stream->fd, SHUT_RDWR);
}

/* The point in CLOCK_MONOTONIC, which condition variables know, that is so far away. */
static struct timespec from_now(int64_t ns)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    ns += at.tv_nsec;
    at.tv_sec += (time_t)(ns / HF__NS_PER_S);
    at.tv_nsec = (long)(ns % HF__NS_PER_S);
    return at;
}

static void *write_lines(void *data)
{
    struct streams *streams = data;

    pthread_mutex_lock(&streams->lock);
    while (!streams->closing) {
        struct stream *stream = streams->first;
        int64_t left_ns = stream != NULL ? stream->due_ns - hf__now_ns() : 0;

        if (stream == NULL) {
            pthread_cond_wait(&streams->changed, &streams->lock);
        } else if (left_ns > 0) {
            struct timespec at = from_now(left_ns);

            pthread_cond_timedwait(&streams->changed, &streams->lock, &at);
        } else {
            take_out(streams, stream);
            write_waiting(stream);
            append(streams, stream);
        }
    }
    pthread_mutex_unlock(&streams->lock);
    return NULL;
}

struct streams *streams_open(void)
{
    struct streams *streams = calloc(1, sizeof *streams);
    pthread_condattr_t attributes;

    if (streams == NULL)
        return NULL;
    pthread_mutex_init(&streams->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&streams->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&streams->thread, NULL, write_lines, streams) == 0)
        return streams;
    free(streams);
    return NULL;
}

void streams_close(struct streams *streams)
{
    if (streams == NULL)
        return;
    pthread_mutex_lock(&streams->lock);
    streams->closing = true;
    pthread_cond_signal(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
    pthread_join(streams->thread, NULL);
    pthread_cond_destroy(&streams->changed);
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

void stream_begin(struct streams *streams, struct stream *stream, struct exchange *x)
{
    struct text head = {0};

    *stream = (struct stream){.fd = x->fd, .chunked = !x->request.version_1_0};
    text_printf(&head, "HTTP/1.1 200 OK\r\n");
    answer_common(&head, "waiting");
    text_printf(&head, "Content-Type: application/x-ndjson\r\nX-Accel-Buffering: no\r\n%s%s\r\n",
                stream->chunked ? "Transfer-Encoding: chunked\r\n" : "",
                x->request.close || !stream->chunked ? "Connection: close\r\n" : "");
    if (head.failed || !wire_send(stream->fd, head.data, head.len))
        (void)shutdown(stream->fd, SHUT_RDWR);
    text_release(&head);
    pthread_mutex_lock(&streams->lock);
    append(streams, stream);
    if (streams->first == stream)
        pthread_cond_signal(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
}

void stream_end(struct streams *streams, struct stream *stream, struct exchange *x)
{
    struct answer *r = &x->answer;
    struct text line = {0};
    bool ok = r->status == HF_OK;
    size_t skip = ok ? 1 : 0; /* the brace, which "status" comes behind; an error has it */
    size_t more = ok ? strlen("{\"status\": \"HF_OK\", ") : 0;

    pthread_mutex_lock(&streams->lock);
    take_out(streams, stream);
    pthread_mutex_unlock(&streams->lock);
    if (stream->chunked)
        text_printf(&line, "%zx\r\n", r->body.len - skip + more);
    if (ok)
        text_printf(&line, "{\"status\": \"HF_OK\", ");
    text_add(&line, r->body.data + skip, r->body.len - skip);
    if (stream->chunked)
        text_printf(&line, "\r\n0\r\n\r\n");
    r->close = r->close || x->request.close || !stream->chunked;
    if (line.failed || r->body.failed || !wire_send(stream->fd, line.data, line.len)) {
        r->close = true;
        if (r->undelivered != NULL)
            r->undelivered(x);
    }
    r->sent = true;
    if (line.data != NULL)
        explicit_bzero(line.data, line.len);
    text_release(&line);
}
