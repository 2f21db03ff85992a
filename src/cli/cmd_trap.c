/* cmd_trap.c - `holdfast trap`: springs the trap that a lock alone cannot avoid, with real
 * processes on the user's own store, first against a plain file and then against a fenced one.
 *
 * Two workers each add a deposit to an account. Worker 1 takes the lock, reads, makes sure that its
 * lease is valid, and is frozen before it writes. Its lease ends; worker 2 does its work. Then
 * worker 1 thaws and writes what it had in mind. */
#include "cli/cli.h"
#include "cli/trap.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast/fence.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096,
    TTL_DEFAULT_MS = 1000,
    PATIENCE_MS = 20000, /* how much longer than the ttl worker 2 waits, and we for a worker */
    TRAP_FAILED = 1      /* exit: the trap did not show what it should */
};

/* What the director tells a worker to do, and what the worker answers. */
enum order { ORDER_TAKE = 't', ORDER_READ = 'r', ORDER_WRITE = 'w', ORDER_QUIT = 'q' };
struct answer {
    enum hf_status status;
    uint64_t token;
    int64_t left_ms;
    long balance;
    char text[HF_ERROR_TEXT_SIZE];
};

struct stage {
    const char *url;
    int64_t ttl_ms;
    bool fenced;
    char lock[64];
    char dir[PATH_SIZE - 64];
    char account[PATH_SIZE];
};

struct worker {
    pid_t pid;
    int orders;  /* we write here */
    int answers; /* and read here */
};

/* ---- the workers: processes of their own ---- */

struct hands {
    const struct stage *stage;
    struct hf_store *store;
    struct hf_lease *lease;
    long deposit;
    long seen;
};

static enum hf_status read_account(const char *path, long *out, struct hf_error *err)
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

/* What everybody does without a fence: a new file, moved into place. */
static enum hf_status write_plainly(const char *path, const char *text, struct hf_error *err)
{
    char temp[PATH_SIZE + 8];
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

static enum hf_status take(struct hands *hands, struct answer *answer, struct hf_error *err)
{
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = (uint32_t)hands->stage->ttl_ms,
                                         .wait_ms = hands->stage->ttl_ms + PATIENCE_MS};
    enum hf_status status = hf_open(hands->stage->url, &hands->store, err);

    if (status == HF_OK)
        status = hf_acquire(hands->store, hands->stage->lock, &options, &hands->lease, err);
    if (status == HF_OK) {
        answer->token = hf_lease_token(hands->lease);
        answer->left_ms = hf_lease_remaining_ms(hands->lease);
    }
    return status;
}

static struct hf_fence_pass show_token(const struct hands *hands)
{
    return (struct hf_fence_pass){.size = sizeof(struct hf_fence_pass),
                                  .token = hf_lease_token(hands->lease),
                                  .issuer = hf_store_url(hands->store)};
}

/* Enters the fence before the first read, and looks at the lease after it: still valid. */
static enum hf_status look(struct hands *hands, struct answer *answer, struct hf_error *err)
{
    struct hf_fence_pass pass = show_token(hands);
    enum hf_status status = HF_OK;

    if (hands->stage->fenced)
        status = hf_fence_enter(hands->stage->account, &pass, err);
    if (status == HF_OK)
        status = read_account(hands->stage->account, &hands->seen, err);
    answer->balance = hands->seen;
    answer->left_ms = hf_lease_remaining_ms(hands->lease);
    return status;
}

static enum hf_status put(struct hands *hands, struct hf_error *err)
{
    struct hf_fence_pass pass = show_token(hands);
    char text[32];

    (void)snprintf(text, sizeof text, "%ld\n", hands->seen + hands->deposit);
    if (!hands->stage->fenced)
        return write_plainly(hands->stage->account, text, err);
    return hf_fence_write(hands->stage->account, &pass, text, strlen(text), err);
}

static void work(const struct stage *stage, long deposit, int orders, int answers)
{
    struct hands hands = {.stage = stage, .deposit = deposit};
    char order;

    while (read(orders, &order, 1) == 1 && order != ORDER_QUIT) {
        struct answer answer = {.status = HF_OK};
        struct hf_error err = {.code = HF_OK};

        if (order == ORDER_TAKE)
            answer.status = take(&hands, &answer, &err);
        else if (order == ORDER_READ)
            answer.status = look(&hands, &answer, &err);
        else
            answer.status = put(&hands, &err);
        memcpy(answer.text, err.text, sizeof answer.text);
        if (write(answers, &answer, sizeof answer) != (ssize_t)sizeof answer)
            break;
    }
    if (hf_release(hands.lease, NULL) != HF_OK)
        hands.lease = NULL; /* worker 1: it was lost long ago, and that is the point */
    hf_close(hands.store);
    _exit(0);
}

/* ---- the director ---- */

static bool start_worker(struct worker *worker, const struct stage *stage, long deposit)
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

static void end_worker(struct worker *worker)
{
    static const char quit = ORDER_QUIT;

    if (worker->pid <= 0)
        return;
    (void)kill(worker->pid, SIGCONT);
    if (write(worker->orders, &quit, 1) != 1)
        (void)kill(worker->pid, SIGKILL);
    (void)close(worker->orders);
    (void)close(worker->answers);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static enum hf_status tell(struct worker *worker, enum order order, int64_t patience_ms,
                           struct answer *answer, struct hf_error *err)
{
    char byte = (char)order;
    struct pollfd fd = {.fd = worker->answers, .events = POLLIN};

    if (write(worker->orders, &byte, 1) == 1 &&
        hf__poll_until(&fd, 1, hf__now_ns() + patience_ms * HF__NS_PER_MS) == 1 &&
        read(worker->answers, answer, sizeof *answer) == (ssize_t)sizeof *answer) {
        if (answer->status != HF_OK)
            return hf__fail(err, answer->status, "%s", answer->text);
        return HF_OK;
    }
    return hf__fail(err, HF_UNKNOWN, "a worker did not answer");
}

static enum hf_status freeze(struct worker *worker, struct hf_error *err)
{
    int status;

    if (kill(worker->pid, SIGSTOP) != 0 || waitpid(worker->pid, &status, WUNTRACED) < 0 ||
        !WIFSTOPPED(status))
        return hf__fail(err, HF_UNKNOWN, "worker 1 cannot be stopped");
    return HF_OK;
}

static void note(struct trap_run *run, enum trap_step step, int64_t start_ns)
{
    run->at_ms[step] = (hf__now_ns() - start_ns) / HF__NS_PER_MS;
}

/* The story, step by step. */
static enum hf_status play(const struct stage *stage, struct worker *one, struct worker *two,
                           struct trap_run *run, struct hf_error *err)
{
    int64_t patience_ms = stage->ttl_ms + 2 * PATIENCE_MS;
    int64_t start_ns = hf__now_ns();
    struct answer answer = {.status = HF_OK};
    enum hf_status status = tell(one, ORDER_TAKE, patience_ms, &answer, err);

    run->token_1 = answer.token;
    note(run, TRAP_TAKES_1, start_ns);
    if (status == HF_OK)
        status = tell(one, ORDER_READ, patience_ms, &answer, err);
    run->read_1 = answer.balance;
    run->left_ms = answer.left_ms;
    note(run, TRAP_READS_1, start_ns);
    if (status == HF_OK)
        status = freeze(one, err);
    note(run, TRAP_FREEZES, start_ns);
    run->at_ms[TRAP_EXPIRES] = run->at_ms[TRAP_READS_1] + run->left_ms;
    if (status == HF_OK)
        status = tell(two, ORDER_TAKE, patience_ms, &answer, err);
    run->token_2 = answer.token;
    note(run, TRAP_TAKES_2, start_ns);
    if (status == HF_OK)
        status = tell(two, ORDER_READ, patience_ms, &answer, err);
    run->read_2 = answer.balance;
    note(run, TRAP_READS_2, start_ns);
    if (status == HF_OK)
        status = tell(two, ORDER_WRITE, patience_ms, &answer, err);
    note(run, TRAP_WRITES_2, start_ns);
    if (status != HF_OK)
        return status;
    (void)kill(one->pid, SIGCONT);
    note(run, TRAP_THAWS, start_ns);
    status = tell(one, ORDER_WRITE, patience_ms, &answer, err);
    note(run, TRAP_WRITES_1, start_ns);
    run->refused = status == HF_STALE;
    if (run->refused)
        memcpy(run->refusal, answer.text, sizeof run->refusal);
    if (status != HF_OK && status != HF_STALE)
        return status;
    return read_account(stage->account, &run->final_balance, err);
}

/* A folder of its own, with the account in it. */
static bool build_stage(struct stage *stage)
{
    const char *tmp = secure_getenv("TMPDIR");
    char text[32];
    struct hf_error err;

    (void)snprintf(stage->lock, sizeof stage->lock, "holdfast-trap-%ld-%s", (long)getpid(),
                   stage->fenced ? "fenced" : "plain");
    (void)snprintf(stage->dir, sizeof stage->dir, "%s/holdfast-trap-XXXXXX",
                   tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(stage->dir) == NULL) {
        cli_error("cannot make a folder %s: %s", stage->dir, strerror(errno));
        return false;
    }
    (void)snprintf(stage->account, sizeof stage->account, "%s/account", stage->dir);
    (void)snprintf(text, sizeof text, "%d\n", TRAP_START);
    if (write_plainly(stage->account, text, &err) == HF_OK)
        return true;
    cli_error("%s", err.text);
    (void)rmdir(stage->dir);
    return false;
}

static void strike_stage(const struct stage *stage)
{
    static const char *const files[] = {"account", "account.new", ".account.fence",
                                        ".account.fence-new"};
    char path[PATH_SIZE];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", stage->dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(stage->dir);
}

/* One springing; 0, or the exit code after a message. */
static int spring(const char *url, int64_t ttl_ms, bool fenced, struct trap_run *run)
{
    struct stage stage = {.url = url, .ttl_ms = ttl_ms, .fenced = fenced};
    struct worker one = {.pid = 0};
    struct worker two = {.pid = 0};
    struct hf_error err;
    enum hf_status status;

    *run = (struct trap_run){.fenced = fenced};
    if (!build_stage(&stage))
        return EXIT_HF_UNAVAILABLE;
    if (start_worker(&one, &stage, TRAP_DEPOSIT_1) && start_worker(&two, &stage, TRAP_DEPOSIT_2))
        status = play(&stage, &one, &two, run, &err);
    else
        status = hf__fail(&err, HF_NOMEM, "cannot start a worker: %s", strerror(errno));
    end_worker(&two);
    end_worker(&one);
    strike_stage(&stage);
    return status == HF_OK ? 0 : cli_fail(&err);
}

bool trap_sprung(const struct trap_run *run)
{
    if (run->fenced)
        return run->refused && run->final_balance == TRAP_START + TRAP_DEPOSIT_2;
    return !run->refused && run->final_balance == TRAP_START + TRAP_DEPOSIT_1;
}

int cmd_trap(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = cli_find("trap");
    const char *url = context->store_url;
    char own_url[CLI_URL_SIZE];
    bool has_url = false;
    const char *svg = NULL;
    int64_t ttl_ms = TTL_DEFAULT_MS;
    struct trap_run runs[2];
    char shown[256];
    char ttl_text[32];
    const struct cli_option options[] = {
        {0, "store", CLI_URL, "URL", "the store to try it on; default: as for every command", NULL,
         own_url, &has_url},
        {0, "ttl", CLI_DURATION, "DURATION", "of the workers' leases; default: 1s", NULL, &ttl_ms,
         NULL},
        {0, "svg", CLI_TEXT, "FILE", "draw what happened, too", NULL, &svg, NULL},
        {.name = NULL}};
    int first = cli_parse(command, options, argc, argv, NULL);
    bool colour = isatty(STDOUT_FILENO) && secure_getenv("NO_COLOR") == NULL;

    if (first < 0)
        return cli_parse_exit(first);
    if (first < argc)
        return cli_one_too_many(command, argv[first]);
    if (!cli_check_ttl(command, ttl_ms))
        return EXIT_HF_USAGE;
    if (has_url)
        url = own_url;
    if (url == NULL || url[0] == '\0')
        url = "file:";
    hf__url_redact(shown, sizeof shown, url);
    printf("Two workers, one lock in %s with a ttl of %s, one account with %d in it.\n", shown,
           hf__format_duration(ttl_text, sizeof ttl_text, ttl_ms), TRAP_START);
    for (int i = 0; i < 2; i++) {
        int failed = spring(url, ttl_ms, i == 1, &runs[i]);

        if (failed != 0)
            return failed;
        trap_print(stdout, &runs[i], colour);
    }
    if (svg != NULL && !trap_draw(svg, runs, shown, ttl_ms)) {
        cli_error("cannot write %s: %s", svg, strerror(errno));
        return EXIT_HF_UNAVAILABLE;
    }
    return trap_sprung(&runs[0]) && trap_sprung(&runs[1]) ? 0 : TRAP_FAILED;
}
