/* worker.c - the workers of the trap: processes of their own, which do what they are told. */
#include "cli/trap/trap.h"

#include "base/base.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast/fence.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct work {
    const struct trap_stage *stage;
    struct hf_store *store;
    struct hf_lease *lease;
    long deposit;
    long seen;
};

enum hf_status trap_read_account(const char *path, long *out, struct hf_error *err)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    if (got <= 0)
        return hf__fail(err, HF_UNREACHABLE, "cannot read %s: %s", path, strerror(errno));
    *out = strtol(text, NULL, 10);
    return HF_OK;
}

enum hf_status trap_write_plainly(const char *path, const char *text, struct hf_error *err)
{
    char temp[TRAP_PATH_SIZE + 8];
    int fd;
    bool ok;

    (void)snprintf(temp, sizeof temp, "%s.new", path);
    fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    if (fd >= 0)
        (void)close(fd);
    if (!ok || rename(temp, path) != 0)
        return hf__fail(err, HF_UNREACHABLE, "cannot write %s: %s", path, strerror(errno));
    return HF_OK;
}

static enum hf_status take(struct work *work, struct trap_answer *answer, struct hf_error *err)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)work->stage->ttl_ms,
                                         .wait_ms = work->stage->ttl_ms + TRAP_EXTRA_WAIT_MS};
    enum hf_status status = hf_open(work->stage->url, &work->store, err);

    if (status == HF_OK)
        status = hf_acquire(work->store, work->stage->lock, &options, &work->lease, err);
    if (status == HF_OK) {
        answer->token = hf_lease_token(work->lease);
        answer->left_ms = hf_lease_remaining_ms(work->lease);
    }
    return status;
}

static struct hf_fence_pass show_token(const struct work *work)
{
    return (struct hf_fence_pass){.size = sizeof(struct hf_fence_pass),
                                  .token = hf_lease_token(work->lease),
                                  .issuer = hf_store_url(work->store)};
}

/* Enters the fence before the first read, and looks at the lease after it: still valid. */
static enum hf_status enter_and_read(struct work *work, struct trap_answer *answer,
                                     struct hf_error *err)
{
    struct hf_fence_pass pass = show_token(work);
    enum hf_status status = HF_OK;

    if (work->stage->fenced)
        status = hf_fence_enter(work->stage->account, &pass, err);
    if (status == HF_OK)
        status = trap_read_account(work->stage->account, &work->seen, err);
    answer->balance = work->seen;
    answer->left_ms = hf_lease_remaining_ms(work->lease);
    return status;
}

static enum hf_status put(struct work *work, struct hf_error *err)
{
    struct hf_fence_pass pass = show_token(work);
    char text[32];

    (void)snprintf(text, sizeof text, "%ld\n", work->seen + work->deposit);
    if (!work->stage->fenced)
        return trap_write_plainly(work->stage->account, text, err);
    return hf_fence_write(work->stage->account, &pass, text, strlen(text), err);
}

static void work(const struct trap_stage *stage, long deposit, int orders, int answers)
{
    struct work work = {.stage = stage, .deposit = deposit};
    char order;

    while (read(orders, &order, 1) == 1 && order != TRAP_ORDER_QUIT) {
        struct trap_answer answer = {.status = HF_OK};
        struct hf_error err = {.code = HF_OK};

        if (order == TRAP_ORDER_TAKE)
            answer.status = take(&work, &answer, &err);
        else if (order == TRAP_ORDER_READ)
            answer.status = enter_and_read(&work, &answer, &err);
        else
            answer.status = put(&work, &err);
        memcpy(answer.text, err.text, sizeof answer.text);
        if (write(answers, &answer, sizeof answer) != (ssize_t)sizeof answer)
            break;
    }
    if (hf_release(work.lease, NULL) != HF_OK)
        work.lease = NULL; /* worker 1: it was lost long ago, and that is the point */
    hf_close(work.store);
    _exit(0);
}

/* ---- what the director does with them ---- */

bool trap_start_worker(struct trap_worker *worker, const struct trap_stage *stage, long deposit)
{
    int orders[2];
    int answers[2];
    pid_t director = getpid();

    if (pipe2(orders, O_CLOEXEC) != 0)
        return false;
    if (pipe2(answers, O_CLOEXEC) != 0) {
        (void)close(orders[0]);
        (void)close(orders[1]);
        return false;
    }
    (void)fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)close(orders[1]);
        (void)close(answers[0]);
        /* A stopped worker must not stay behind when we are killed. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != director)
            _exit(1);
        work(stage, deposit, orders[0], answers[1]);
    }
    (void)close(orders[0]);
    (void)close(answers[1]);
    worker->orders = orders[1];
    worker->answers = answers[0];
    return worker->pid > 0;
}

void trap_end_worker(struct trap_worker *worker, bool at_once)
{
    static const char quit = TRAP_ORDER_QUIT;

    if (worker->pid <= 0)
        return;
    (void)cli_kill(worker->pid, SIGCONT);
    if (at_once || write(worker->orders, &quit, 1) != 1)
        (void)cli_kill(worker->pid, SIGKILL);
    (void)close(worker->orders);
    (void)close(worker->answers);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

enum hf_status trap_tell(const struct trap_stage *stage, struct trap_worker *worker,
                         enum trap_order order, struct trap_answer *answer, struct hf_error *err)
{
    enum { ANSWER, STOP, COUNT };
    struct pollfd fds[COUNT] = {[ANSWER] = {.fd = worker->answers, .events = POLLIN},
                                [STOP] = {.fd = stage->stop_fd, .events = POLLIN}};
    int64_t limit_ms = stage->ttl_ms + 2 * TRAP_EXTRA_WAIT_MS;
    char byte = (char)order;

    if (write(worker->orders, &byte, 1) == 1 &&
        hf__poll_until(fds, COUNT, hf__now_ns() + limit_ms * HF__NS_PER_MS) > 0) {
        if (fds[STOP].revents != 0)
            return hf__fail(err, HF_CANCELLED, "told to stop");
        if (read(worker->answers, answer, sizeof *answer) == (ssize_t)sizeof *answer) {
            if (answer->status != HF_OK)
                return hf__fail(err, answer->status, "%s", answer->text);
            return HF_OK;
        }
    }
    return hf__fail(err, HF_UNKNOWN, "a worker did not answer");
}

enum hf_status trap_freeze(struct trap_worker *worker, struct hf_error *err)
{
    int status;

    if (cli_kill(worker->pid, SIGSTOP) != 0 || waitpid(worker->pid, &status, WUNTRACED) < 0 ||
        !WIFSTOPPED(status))
        return hf__fail(err, HF_UNKNOWN, "worker 1 cannot be stopped");
    return HF_OK;
}
