/* notify.c - READY, STATUS and WATCHDOG for a service manager.
 *
 * The watchdog is answered by a thread of its own, because the main thread waits inside the store,
 * without a limit. It does not answer blindly: a leader whose lease has been over for longer than
 * its tree may take to end is stuck, and is better restarted. A process that is stopped answers
 * nothing anyway. */
#include "cli/elect/notify.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    MESSAGE_SIZE = 512,
    SEND_MS = 1000,         /* a manager that takes nothing does not hold us up for longer */
    STUCK_MS = 10000,       /* beyond the grace */
    ANSWERS_PER_TIMEOUT = 2 /* as sd_watchdog_enabled(3) has it */
};

static int connect_to(const char *path);
static int64_t watchdog_interval_ms(void);
static void *answer(void *data);
static bool is_healthy(struct notify *notify);
static void tell(const struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void notify_open(struct notify *notify, int64_t grace_ms)
{
    const char *path = secure_getenv("NOTIFY_SOCKET");

    *notify = (struct notify){.fd = -1, .grace_ms = grace_ms};
    cli_condition_init(&notify->condition);
    if (path != NULL)
        notify->fd = connect_to(path);
    if (notify->fd >= 0)
        notify->interval_ms = watchdog_interval_ms();
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void notify_ready(struct notify *notify, const char *name)
{
    tell(notify, "READY=1");
    notify_standby(notify, name);
    if (notify->interval_ms > 0)
        notify->running = cli_thread_start(&notify->thread, answer, notify);
}

void notify_leader(struct notify *notify, struct hf_lease *lease)
{
    pthread_mutex_lock(&notify->condition.lock);
    notify->lease = lease;
    notify->lost_ns = 0;
    pthread_mutex_unlock(&notify->condition.lock);
    tell(notify, "STATUS=leader of \"%s\", term %" PRIu64, hf_lease_name(lease),
         hf_lease_token(lease));
}

void notify_standby(struct notify *notify, const char *name)
{
    pthread_mutex_lock(&notify->condition.lock);
    notify->lease = NULL;
    pthread_mutex_unlock(&notify->condition.lock);
    tell(notify, "STATUS=standby for \"%s\"", name);
}

void notify_close(struct notify *notify)
{
    tell(notify, "STOPPING=1");
    if (notify->running) {
        pthread_mutex_lock(&notify->condition.lock);
        notify->stop = true;
        pthread_cond_signal(&notify->condition.change);
        pthread_mutex_unlock(&notify->condition.lock);
        pthread_join(notify->thread, NULL);
    }
    cli_condition_clear(&notify->condition);
    if (notify->fd >= 0)
        (void)close(notify->fd);
}

/* "/path", or "@name" in the abstract name space. -1: neither, or nobody is there. */
static int connect_to(const char *path)
{
    const struct timeval patience = {.tv_sec = SEND_MS / 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    int fd;

    if ((path[0] != '/' && path[0] != '@') || len >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* 0: no watchdog, or one for another process. */
static int64_t watchdog_interval_ms(void)
{
    const char *usec_text = secure_getenv("WATCHDOG_USEC");
    const char *pid_text = secure_getenv("WATCHDOG_PID");
    uint64_t usec, pid;

    if (usec_text == NULL || !hf__parse_u64(usec_text, &usec) || usec > INT64_MAX)
        return 0;
    if (pid_text != NULL && (!hf__parse_u64(pid_text, &pid) || pid != (uint64_t)getpid()))
        return 0;
    return (int64_t)(usec / 1000 / ANSWERS_PER_TIMEOUT);
}

static void *answer(void *data)
{
    struct notify *notify = data;
    bool stop = false;

    while (!stop) {
        struct timespec until = cli_condition_time(notify->interval_ms);
        bool healthy;

        pthread_mutex_lock(&notify->condition.lock);
        healthy = is_healthy(notify);
        pthread_mutex_unlock(&notify->condition.lock);
        if (healthy)
            tell(notify, "WATCHDOG=1");
        pthread_mutex_lock(&notify->condition.lock);
        while (!notify->stop && cli_condition_wait(&notify->condition, &until))
            continue;
        stop = notify->stop;
        pthread_mutex_unlock(&notify->condition.lock);
    }
    return NULL;
}

static bool is_healthy(struct notify *notify)
{
    int64_t now_ns = hf__now_ns();

    if (notify->lease == NULL || hf_lease_remaining_ms(notify->lease) > 0)
        return true;
    if (notify->lost_ns == 0)
        notify->lost_ns = now_ns;
    return now_ns - notify->lost_ns < (notify->grace_ms + STUCK_MS) * HF__NS_PER_MS;
}

static void tell(const struct notify *notify, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;

    if (notify->fd < 0)
        return;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)send(notify->fd, message, strlen(message), MSG_NOSIGNAL);
}
