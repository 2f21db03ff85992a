/* cmd_keep.c - holdfast keep: a lock for a script, renewed in the background until the script ends.
 *
 * The story: fork; the child takes the lock, prints what the script evaluates, and lives on as the
 * keeper. keep.h shows the processes. */
#include "cli/say/eval.h"
#include "cli/keep/keep.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_EXIT_BASE = 128 };

struct keeping {
    const struct cli_context *context;
    struct run_options options;
    struct keep_watch watch;
    uint64_t pid;
    int link[2];   /* sockets, the watchdog's and the keeper's */
    int handed[2]; /* a byte: the lock is taken, the front may end */
    struct take take;
};

static int read_request(struct keeping *keeping, int argc, char **argv, bool *answered);
static int check_request(struct keeping *keeping);
static int go_to_background(struct keeping *keeping, int *die_of);
static int front(const struct keeping *keeping, pid_t keeper, int *die_of);
static _Noreturn void keeper_main(struct keeping *keeping, pid_t front_pid);
static int take_and_keep(struct keeping *keeping);
static int hand_over(struct keeping *keeping);
static int keep(struct keeping *keeping);

static int keep_main(const struct cli_context *context, int argc, char **argv)
{
    struct keeping keeping = {.context = context, .options = {.take = TAKE_DEFAULTS}};
    bool answered = false;
    int die_of = 0;
    int exit_code = read_request(&keeping, argc, argv, &answered);

    if (answered)
        return exit_code;
    if (exit_code == 0)
        exit_code = go_to_background(&keeping, &die_of);
    if (exit_code != 0) {
        printf("(exit %d)\n", exit_code);
        (void)fflush(stdout);
    }
    return die_of ? cli_die_of(die_of) : exit_code;
}

const struct cli_command command_keep = {
    "keep", "[options] NAME", "take a lock for a script and renew it until the script ends",
    keep_main};

static int read_request(struct keeping *keeping, int argc, char **argv, bool *answered)
{
    struct run_options *options = &keeping->options;
    const struct cli_option table[] = {{'p', "pid", CLI_NUMBER, "PID",
                                        "the script to keep the lock for: $$", NULL, &keeping->pid,
                                        NULL},
                                       TAKE_OPTIONS(&options->take),
                                       RUN_ENDING_OPTIONS(options),
                                       {.name = NULL}};
    int parsed = cli_parse_operand(&command_keep, table, argc, argv, &options->name);

    *answered = parsed == CLI_HELP_SHOWN;
    if (parsed < 0)
        return cli_parse_exit(parsed);
    return check_request(keeping);
}

static int check_request(struct keeping *keeping)
{
    struct run_options *options = &keeping->options;
    char why[RUN_WHY_SIZE];
    int bad = take_check(&command_keep, options->name, &options->take);

    if (bad)
        return bad;
    if (keeping->pid == 0)
        return cli_usage_error(&command_keep, "--pid is missing; in a script, write: "
                                              "eval \"$(holdfast keep --pid $$ NAME)\" || exit");
    if (keeping->pid == 1 || keeping->pid > INT32_MAX)
        return cli_usage_error(&command_keep, "--pid: there is no process with that number");
    /* $BASHPID inside of $(...), whose shell ends with it. */
    if (keeping->pid == (uint64_t)getpid())
        return cli_usage_error(&command_keep,
                               "--pid: %d is this command itself, not the script; use $$",
                               (int)getpid());
    run_choose_grace(options);
    if (options->grace_ms > HF_TTL_MAX_MS)
        return cli_usage_error(&command_keep, "--grace: at most 1d");
    return run_timing_fits(options, why, sizeof why) ? 0
                                                     : cli_usage_error(&command_keep, "%s", why);
}

static bool prepare(struct keeping *keeping)
{
    struct keep_watch *watch = &keeping->watch;

    watch->script = (pid_t)keeping->pid;
    watch->name = keeping->options.name;
    watch->page =
        mmap(NULL, sizeof *watch->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (watch->page != MAP_FAILED &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeping->link) == 0 &&
        pipe2(keeping->handed, O_CLOEXEC) == 0 &&
        (keeping->take.signal_fd = cli_catch_signals()) >= 0)
        return true;
    cli_error("cannot share memory or open a pipe: %s", strerror(errno));
    return false;
}

/* What the script has open is none of the keeper's business: a lock file of flock(1) above all. */
static int go_to_background(struct keeping *keeping, int *die_of)
{
    pid_t self_pid;
    pid_t keeper;

    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    keeping->watch.script_fd = keep_open_script((pid_t)keeping->pid);
    if (keeping->watch.script_fd < 0) {
        cli_error("--pid: cannot watch process %d: %s", (int)keeping->pid, strerror(errno));
        return errno == EPERM ? EXIT_HF_DENIED : EXIT_HF_USAGE;
    }
    if (!prepare(keeping))
        return EXIT_HF_INTERNAL;
    self_pid = getpid();
    keeper = fork();
    if (keeper == 0)
        keeper_main(keeping, self_pid);
    if (keeper < 0) {
        cli_error("cannot start a process: %s", strerror(errno));
        return EXIT_HF_INTERNAL;
    }
    (void)close(keeping->handed[1]);
    return front(keeping, keeper, die_of);
}

/* Waits until the keeper has the lock, or has not. */
static int front(const struct keeping *keeping, pid_t keeper, int *die_of)
{
    struct pollfd fds[] = {{.fd = keeping->handed[0], .events = POLLIN},
                           {.fd = keeping->take.signal_fd, .events = POLLIN}};
    int status;
    char byte;
    int exit_code;

    for (;;) {
        (void)hf__poll_until(fds, 2, HF_NEVER);
        if (fds[1].revents != 0) {
            int number = cli_pending_signal(keeping->take.signal_fd);

            if (number) {
                *die_of = number;
                (void)cli_kill(keeper, number);
            }
        }
        if (fds[0].revents != 0)
            break;
    }
    if (read(keeping->handed[0], &byte, 1) == 1) {
        *die_of = 0;
        return 0;
    }
    while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
        continue;
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_EXIT_BASE + WTERMSIG(status);
    if (exit_code != SIGNAL_EXIT_BASE + *die_of)
        *die_of = 0;
    return exit_code;
}

static _Noreturn void keeper_main(struct keeping *keeping, pid_t front_pid)
{
    pid_t keeper = getpid();
    pid_t watchdog;
    int exit_code = EXIT_HF_INTERNAL;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != front_pid)
        _exit(EXIT_HF_INTERNAL);
    (void)close(keeping->handed[0]);
    run_page_init(&keeping->watch.page->plan, &keeping->options);
    watchdog = fork();
    if (watchdog == 0) {
        (void)close(keeping->link[1]);
        (void)close(keeping->handed[1]);
        (void)close(STDOUT_FILENO);
        keeping->watch.end_fd = keeping->link[0];
        keep_watchdog(&keeping->watch, keeper);
    }
    (void)close(keeping->link[0]);
    if (watchdog > 0)
        exit_code = take_and_keep(keeping);
    else
        cli_error("cannot start a process: %s", strerror(errno));
    atomic_store(&keeping->watch.page->done, 1);
    _exit(exit_code);
}

static void publish(struct hf_lease *lease, void *data)
{
    struct keeping *keeping = data;

    run_page_publish(&keeping->watch.page->plan, &lease, 1);
}

static enum hf_status open_and_take(struct keeping *keeping, struct hf_error *err)
{
    const struct take_options *given = &keeping->options.take;
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = given->ttl_given ? (uint32_t)given->ttl_ms : 0};
    struct take *take = &keeping->take;
    enum hf_status status;

    take->name = keeping->options.name;
    take->label = given->label;
    take->label_pid = keeping->watch.script;
    take->on_renewed = publish;
    take->data = keeping;
    status = take_open(take, keeping->context->store_url, given->wait_ms, err);
    if (status == HF_OK)
        status = take_lock(take, &options, &keeping->watch.lease, err);
    take_end(take);
    return status;
}

/* The exit code, if the lock could not be taken or handed over; else of the keeper, which nobody
 * sees. */
static int take_and_keep(struct keeping *keeping)
{
    struct hf_error err;
    enum hf_status status;
    int number;
    int exit_code;

    keeping->take.writer = cli_stderr_open();
    if (keeping->take.writer == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    status = open_and_take(keeping, &err);
    number = status == HF_OK ? 0 : cli_pending_signal(keeping->take.signal_fd);
    exit_code = SIGNAL_EXIT_BASE + number;
    if (!number && status != HF_OK)
        exit_code =
            status == HF_BUSY ? (int)keeping->options.take.busy_exit : cli_exit_code(status);
    if (status == HF_OK)
        exit_code = hand_over(keeping);
    else if (!number)
        cli_stderr_say(keeping->take.writer, "%s", cli_text_of(&err));
    cli_stderr_close(keeping->take.writer);
    hf_close(keeping->take.store);
    return exit_code;
}

/* The lease may be shorter than was asked for. */
static bool fit_to_lease(struct keeping *keeping)
{
    struct run_options *options = &keeping->options;
    char why[RUN_WHY_SIZE];

    options->take.ttl_ms = hf_lease_ttl_ms(keeping->watch.lease);
    run_choose_grace(options);
    if (!run_timing_fits(options, why, sizeof why)) {
        cli_error("lock \"%s\": %s", options->name, why);
        return false;
    }
    keeping->watch.page->plan.grace_ns = options->grace_ms * HF__NS_PER_MS;
    keeping->watch.page->plan.margin_ns = run_margin_ns(options->take.ttl_ms);
    run_page_publish(&keeping->watch.page->plan, &keeping->watch.lease, 1);
    return true;
}

static bool print_lease(const struct keeping *keeping)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)getpid());
    cli_export_lease(keeping->context, keeping->take.store, keeping->watch.lease);
    cli_export("HOLDFAST_KEEPER", number);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    take_say_not_written(keeping->options.name);
    return false;
}

/* Whoever reads our output reads it to its end, so that we must not keep it open. */
static bool leave_the_script(const struct keeping *keeping)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0) {
        cli_error("cannot leave the terminal: %s", strerror(errno));
        return false;
    }
    (void)close(null_fd);
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, 0);
    (void)prctl(PR_SET_NAME, "holdfast-keep");
    return write(keeping->handed[1], "k", 1) == 1;
}

static int hand_over(struct keeping *keeping)
{
    struct hf_error err;
    int exit_code = EXIT_HF_USAGE;
    bool stop = poll(&(struct pollfd){.fd = keeping->take.signal_fd, .events = POLLIN}, 1, 0) > 0;

    if (stop) {
        exit_code = SIGNAL_EXIT_BASE + cli_pending_signal(keeping->take.signal_fd);
    } else if (fit_to_lease(keeping)) {
        exit_code = EXIT_HF_INTERNAL;
        keep_share_life(keeping->link[1], hf_store_life_fd(keeping->take.store));
        if (print_lease(keeping) && leave_the_script(keeping))
            return keep(keeping);
    }
    atomic_store(&keeping->watch.page->done, 1);
    if (hf_release(keeping->watch.lease, &err) != HF_OK)
        (void)cli_fail(&err);
    return exit_code;
}

/* To the end of the script, or until somebody tells us. */
static int keep(struct keeping *keeping)
{
    struct hf_error err;
    enum hf_status status;

    (void)close(keeping->handed[1]);
    keeping->watch.end_fd = keeping->take.signal_fd;
    (void)keep_watch(&keeping->watch);
    atomic_store(&keeping->watch.page->done, 1);
    status = hf_release(keeping->watch.lease, &err);
    if (status != HF_OK && status != HF_LOST)
        take_say_not_released(keeping->take.writer, keeping->options.name, &err);
    return cli_exit_code(status);
}
