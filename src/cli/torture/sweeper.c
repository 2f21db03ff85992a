/* sweeper.c - removes what the torture leaves in the store, even when that was killed: a process in
 * a session of its own, which sleeps until the torture is over. */
#include "cli/torture/parts.h"

#include "base/base.h"
#include "cli/cli.h"
#include "client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXTRA_MS = 15000, /* beyond the ttl, for holds of the dead to end */
    PAUSE_MS = 50     /* between two tries */
};

/* Tries until the lock is free, or it takes too long. */
static enum hf_status forget(struct hf_store *store, const char *name, int64_t deadline_ns,
                             struct hf_error *report)
{
    for (;;) {
        enum hf_status status = hf__forget(store, name, report);
        bool passes = status == HF_BUSY || status == HF_UNKNOWN || status == HF_UNREACHABLE ||
                      status == HF_QUARANTINE;

        if (!passes || hf__now_ns() > deadline_ns)
            return status;
        hf__sleep_ns(PAUSE_MS * HF__NS_PER_MS);
    }
}

static struct hf_store *open_store(const char *url, int64_t deadline_ns, struct hf_error *err)
{
    struct hf_store *store = NULL;

    while (hf_open(url, &store, err) != HF_OK && hf__now_ns() < deadline_ns)
        hf__sleep_ns(PAUSE_MS * HF__NS_PER_MS);
    return store;
}

static void sweep_names(const struct torture_plan *plan, struct torture_sweep *out)
{
    int64_t deadline_ns = hf__now_ns() + (plan->ttl_ms + EXTRA_MS) * HF__NS_PER_MS;
    struct hf_error err = {.code = HF_OK};
    struct hf_store *store = open_store(plan->url, deadline_ns, &err);
    char name[TORTURE_NAME_SIZE];

    out->known = true;
    if (store == NULL) {
        out->status = err.code;
        memcpy(out->trouble, err.text, sizeof out->trouble);
        return;
    }
    for (int i = 0; i < TORTURE_LOCKS; i++) {
        enum hf_status status = forget(store, torture_name(plan, i, name), deadline_ns, &err);

        if (status == HF_OK) {
            out->forgotten++;
            memcpy(out->leaves, err.text, sizeof out->leaves);
        } else if (out->status == HF_OK) {
            out->status = status;
            memcpy(out->trouble, err.text, sizeof out->trouble);
        }
    }
    hf_close(store);
}

/* In the child. Whoever reads what the torture prints does not wait for us. */
static void be_sweeper(const struct torture_plan *plan, int life, int answers)
{
    struct torture_sweep sweep = {.known = false};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char byte;

    (void)setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        (void)dup2(null, fd);
    while (read(life, &byte, 1) < 0 && errno == EINTR)
        continue;
    sweep_names(plan, &sweep);
    if (write(answers, &sweep, sizeof sweep) != (ssize_t)sizeof sweep)
        _exit(1); /* nobody is there to hear it */
    _exit(0);
}

bool torture_sweeper_start(struct torture_sweeper *sweeper, const struct torture_plan *plan)
{
    int life[2];
    int answers[2];

    if (pipe2(life, O_CLOEXEC) != 0)
        return false;
    if (pipe2(answers, O_CLOEXEC) != 0) {
        (void)close(life[0]);
        (void)close(life[1]);
        return false;
    }
    (void)fflush(NULL);
    sweeper->pid = fork();
    if (sweeper->pid == 0) {
        (void)close(life[1]);
        (void)close(answers[0]);
        be_sweeper(plan, life[0], answers[1]);
    }
    (void)close(life[0]);
    (void)close(answers[1]);
    sweeper->life = life[1];
    sweeper->answers = answers[0];
    return sweeper->pid > 0;
}

void torture_sweeper_finish(struct torture_sweeper *sweeper, const struct torture_plan *plan,
                            struct torture_sweep *out)
{
    enum { ANSWER, STOP, COUNT };
    struct pollfd fds[COUNT] = {[ANSWER] = {.fd = sweeper->answers, .events = POLLIN},
                                [STOP] = {.fd = plan->stop_fd, .events = POLLIN}};

    *out = (struct torture_sweep){.known = false};
    (void)close(sweeper->life);
    if (hf__poll_until(fds, COUNT,
                       hf__now_ns() + 2LL * EXTRA_MS * HF__NS_PER_MS +
                           plan->ttl_ms * HF__NS_PER_MS) > 0 &&
        fds[ANSWER].revents != 0 &&
        read(sweeper->answers, out, sizeof *out) != (ssize_t)sizeof *out)
        out->known = false;
    (void)close(sweeper->answers);
    if (out->known)
        (void)waitpid(sweeper->pid, NULL, 0);
}
