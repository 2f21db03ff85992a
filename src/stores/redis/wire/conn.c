/* conn.c - one connection to a Redis server. */
#include "stores/redis/wire/conn.h"
#include "base/base.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 16384  /* taken from the socket at a time */
#define AWAKE_NS   150000 /* how long an answer is looked for awake */
#define NAP_MAX    16     /* answers waited for asleep after some that came later */

struct rd_conn *rd_conn_begin(const struct hf__address *address, const struct rd_tls_config *tls)
{
    struct rd_conn *conn = calloc(1, sizeof *conn);

    if (conn == NULL)
        return NULL;
    conn->fd = -1;
    conn->tls_config = tls;
    memcpy(conn->host, address->host, sizeof conn->host);
    conn->reader = rd_reader_open();
    conn->dial = rd_dial_open(address);
    if (conn->reader == NULL || conn->dial == NULL) {
        rd_conn_close(conn);
        return NULL;
    }
    return conn;
}

/* The descriptor belongs to the dial until it is connected. */
static bool step_dial(struct rd_conn *conn, enum hf_status *status)
{
    struct rd_dialled now;
    bool over;

    if (conn->dial == NULL)
        return true;
    over = rd_dial_step(conn->dial, &now);
    conn->wants = POLLOUT;
    conn->fd = now.fd;
    conn->step_ns = now.step_ns;
    if (!over)
        return false;
    rd_dial_close(conn->dial);
    conn->dial = NULL;
    conn->step_ns = HF_NEVER;
    *status = now.status;
    (void)snprintf(conn->why, sizeof conn->why, "%s", now.why);
    if (*status != HF_OK || conn->tls_config == NULL)
        return true;
    conn->tls = rd_tls_open(conn->tls_config, conn->fd, conn->host);
    conn->shaking = conn->tls != NULL;
    if (conn->tls == NULL)
        *status = HF_NOMEM;
    return true;
}

bool rd_conn_step(struct rd_conn *conn, enum hf_status *status)
{
    *status = HF_OK;
    if (!step_dial(conn, status))
        return false;
    if (*status == HF_OK && conn->shaking) {
        if (!rd_tls_step(conn->tls, &conn->wants, status, conn->why, sizeof conn->why))
            return false;
        conn->shaking = false;
    }
    conn->broken = *status != HF_OK;
    return true;
}

enum hf_status rd_conn_open(const struct hf__address *address, const struct rd_tls_config *tls,
                            const struct hf__patience *patience, struct rd_conn **out, char *why,
                            size_t why_size)
{
    struct rd_conn *conn = rd_conn_begin(address, tls);
    enum hf_status status = HF_NOMEM;

    (void)snprintf(why, why_size, "out of memory");
    if (conn == NULL)
        return HF_NOMEM;
    while (!rd_conn_step(conn, &status)) {
        struct hf__patience step = hf__patience_until(patience, conn->step_ns);
        enum hf__waited wait = hf__patience_wait(&step, conn->fd, conn->wants);

        if (wait == HF__WAITED_READY ||
            (wait == HF__WAITED_TIMEOUT && step.deadline_ns < patience->deadline_ns))
            continue;
        status = wait == HF__WAITED_CANCELLED ? HF_CANCELLED : HF_UNREACHABLE;
        (void)snprintf(conn->why, sizeof conn->why, "%s%s", conn->shaking ? "TLS: " : "",
                       wait == HF__WAITED_CANCELLED ? "cancelled"
                       : conn->fd < 0               ? "its name was not resolved in time"
                                                    : "it did not answer in time");
        break;
    }
    if (status == HF_OK) {
        *out = conn;
        return HF_OK;
    }
    (void)snprintf(why, why_size, "%s", conn->why);
    rd_conn_close(conn);
    return status;
}

void rd_conn_close(struct rd_conn *conn)
{
    if (conn == NULL)
        return;
    rd_tls_close(conn->tls, conn->shared || conn->shaking);
    if (conn->fd >= 0 && conn->dial == NULL)
        (void)close(conn->fd);
    rd_dial_close(conn->dial);
    rd_reader_close(conn->reader);
    free(conn);
}

static enum hf_status broke(struct rd_conn *conn, enum hf_status status, const char *why)
{
    conn->broken = true;
    (void)snprintf(conn->why, sizeof conn->why, "%s", why);
    return status;
}

static enum hf_status came_late(struct rd_conn *conn, enum hf_status status, const char *why)
{
    conn->late = true;
    return broke(conn, status, why);
}

/* A read or write failed. The first three are how the kernel says that nobody is there any more. */
static enum hf_status failed(struct rd_conn *conn, enum hf_status status, int error)
{
    conn->silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    return broke(conn, status, error == 0 ? "it closed the connection" : strerror(error));
}

static ssize_t write_some(struct rd_conn *conn, const char *data, size_t len, short *wants)
{
    if (conn->tls != NULL)
        return rd_tls_write(conn->tls, data, len, wants);
    *wants = POLLOUT;
    return send(conn->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t read_some(struct rd_conn *conn, char *data, size_t len, int flags, short *wants)
{
    if (conn->tls != NULL)
        return rd_tls_read(conn->tls, data, len, wants);
    *wants = POLLIN;
    return recv(conn->fd, data, len, flags);
}

enum hf_status rd_conn_send(struct rd_conn *conn, const struct rd_request *request,
                            const struct hf__patience *patience)
{
    size_t done = 0;

    if (request->failed)
        return HF_NOMEM;
    if (!conn->broken) /* else this one only takes back what was sent before */
        conn->sent_ns = hf__now_ns();
    while (done < request->len) {
        short wants = 0;
        ssize_t some = write_some(conn, request->data + done, request->len - done, &wants);
        enum hf__waited wait;

        if (some >= 0) {
            done += (size_t)some;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return failed(conn, HF_UNREACHABLE, errno);
        wait = hf__patience_wait(patience, conn->fd, wants);
        if (wait == HF__WAITED_CANCELLED)
            return broke(conn, HF_CANCELLED, "cancelled");
        conn->silent = wait == HF__WAITED_TIMEOUT;
        if (conn->silent)
            return broke(conn, HF_UNREACHABLE, "it accepts no more data");
    }
    return HF_OK;
}

/* Staying awake did not pay: the next answer is waited for asleep, and more of them if the one
 * after that is late as well. */
static void doze(struct rd_conn *conn)
{
    conn->asleep = conn->nap > 0 ? conn->nap : 1;
    conn->nap = conn->asleep < NAP_MAX / 2 ? 2 * conn->asleep : NAP_MAX;
}

/* Reads what is there. Falling asleep and being woken costs more than a server near by takes to
 * answer, so an answer is looked for awake first, for a moment. Between looks others may run: the
 * server may be waiting for this processor. */
static ssize_t read_awake(struct rd_conn *conn, char *data, size_t len, int64_t start_ns,
                          short *wants)
{
    bool awake = conn->asleep == 0;

    errno = EAGAIN;
    if (!awake)
        conn->asleep--;
    if (!awake && conn->tls == NULL)
        return -1; /* TLS may have it in its own buffer, and does not wake us then */
    for (;;) {
        ssize_t some = read_some(conn, data, len, MSG_DONTWAIT, wants);

        if (awake && some >= 0)
            conn->nap = 0;
        if (some >= 0 || errno != EAGAIN || !awake)
            return some;
        if (hf__now_ns() - start_ns >= AWAKE_NS) {
            doze(conn);
            errno = EAGAIN;
            return -1;
        }
        (void)sched_yield();
    }
}

/* Waits for bytes and hands them to the reader. */
static enum hf_status read_more(struct rd_conn *conn, const struct hf__patience *patience)
{
    char data[READ_BYTES];
    int64_t start_ns = hf__now_ns();
    /* The first read may block for a slice, if nothing is missed by that. */
    bool may_block = conn->tls == NULL && patience->cancel_fd < 0 &&
                     patience->deadline_ns - start_ns > 2 * RD_SLICE_MS * HF__NS_PER_MS;
    short wants = POLLIN;
    ssize_t some = read_awake(conn, data, sizeof data, start_ns, &wants);

    while (some < 0 && (errno == EAGAIN || errno == EINTR)) {
        enum hf__waited wait =
            may_block ? HF__WAITED_READY : hf__patience_wait(patience, conn->fd, wants);

        if (wait == HF__WAITED_CANCELLED)
            return came_late(conn, HF_CANCELLED, "cancelled");
        conn->silent = wait == HF__WAITED_TIMEOUT;
        if (conn->silent)
            return came_late(conn, HF_UNKNOWN, "it did not answer in time");
        some = read_some(conn, data, sizeof data, may_block ? 0 : MSG_DONTWAIT, &wants);
        may_block = false;
    }
    if (some <= 0)
        return failed(conn, HF_UNKNOWN, some == 0 ? 0 : errno);
    if (!rd_reader_feed(conn->reader, data, (size_t)some))
        return broke(conn, HF_UNKNOWN, rd_reader_fault(conn->reader));
    return HF_OK;
}

enum hf_status rd_conn_receive(struct rd_conn *conn, const struct hf__patience *patience,
                               struct rd_reply **out)
{
    for (;;) {
        enum hf_status status;

        if (!rd_reader_next(conn->reader, out))
            return broke(conn, HF_UNKNOWN, rd_reader_fault(conn->reader));
        if (*out != NULL)
            return HF_OK;
        status = read_more(conn, patience);
        if (status != HF_OK)
            return status;
    }
}

enum hf_status rd_conn_glance(struct rd_conn *conn, struct rd_reply **out)
{
    char data[READ_BYTES];

    for (;;) {
        short wants = 0;
        ssize_t some;

        if (!rd_reader_next(conn->reader, out))
            return broke(conn, HF_UNKNOWN, rd_reader_fault(conn->reader));
        if (*out != NULL)
            return HF_OK;
        some = read_some(conn, data, sizeof data, MSG_DONTWAIT, &wants);
        if (some < 0 && errno == EAGAIN)
            return HF_OK;
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return failed(conn, HF_UNKNOWN, some == 0 ? 0 : errno);
        if (!rd_reader_feed(conn->reader, data, (size_t)some))
            return broke(conn, HF_UNKNOWN, rd_reader_fault(conn->reader));
    }
}

bool rd_conn_peek(struct rd_conn *conn, int64_t until_ns, struct rd_reply **out)
{
    bool awake = conn->asleep == 0;

    while (*out == NULL && rd_conn_glance(conn, out) == HF_OK && *out == NULL) {
        if (!awake)
            return false;
        if (hf__now_ns() >= until_ns) {
            doze(conn);
            return false;
        }
        (void)sched_yield();
    }
    if (*out == NULL)
        return false;
    if (awake)
        conn->nap = 0;
    else
        conn->asleep--;
    return true;
}

bool rd_conn_is_quiet(struct rd_conn *conn)
{
    char byte;
    short wants;

    if (conn->broken || rd_reader_pending(conn->reader))
        return false;
    if (conn->tls == NULL)
        return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    /* Session tickets and the like are no answers; only TLS itself can tell. */
    return rd_tls_read(conn->tls, &byte, 1, &wants) < 0 && errno == EAGAIN;
}
