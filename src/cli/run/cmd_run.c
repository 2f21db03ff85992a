/* cmd_run.c - holdfast run: a command under a lock.
 *
 * The story: take the lock (or find that a process above us holds it), start CMD under a watchdog,
 * keep the lease until the whole tree is gone, give the lock back. run.h shows the processes. */
#include "cli/run/run.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_EXIT_BASE = 128 };

static int read_options(struct run_options *options, int argc, char **argv, bool *go_on);
static int find_command(struct run_options *options, int argc, char **argv, int first, bool dashes);
static int check_options(struct run_options *options);
static int open_and_run(struct run_job *job, const struct cli_context *context, int *die_of);
static void find_hold(struct take *take);
static int run_in_store(struct run_job *job, int *die_of);
static int run_under_lease(struct run_job *job, int *die_of);
static enum hf_status take_the_lock(struct run_job *job, struct hf_error *err);
static bool fit_to_store(struct run_job *job);
static bool fit_to_lease(struct run_job *job);
static int not_taken(const struct run_job *job, const struct hf_error *err);
static int run_below_hold(struct run_job *job, int *die_of);
static void give_back(struct run_job *job, struct run_outcome *outcome);
static int exit_code_of(const struct run_job *job, const struct run_outcome *outcome, int *die_of);

static int run_main(const struct cli_context *context, int argc, char **argv)
{
    struct run_options options = {.take = TAKE_DEFAULTS};
    struct run_job job = {
        .options = &options, .lost_pipe = {-1, -1}, .life_fd = -1, .store_fd = -1};
    bool go_on = false;
    int die_of = 0;
    int exit_code = read_options(&options, argc, argv, &go_on);

    if (!go_on)
        return exit_code;
    if (!run_signals_begin(&job.signals))
        return EXIT_HF_INTERNAL;
    /* Before anything else is open, so that its number has one digit: dash(1) redirects from no
     * other. */
    job.page =
        mmap(NULL, sizeof *job.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job.page == MAP_FAILED || pipe2(job.lost_pipe, O_CLOEXEC) < 0) {
        cli_error("cannot share memory or open a pipe: %s", strerror(errno));
        return EXIT_HF_INTERNAL;
    }
    job.writer = cli_stderr_open();
    if (job.writer == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    exit_code = open_and_run(&job, context, &die_of);
    cli_stderr_close(job.writer);
    return die_of ? cli_die_of(die_of) : exit_code;
}

const struct cli_command command_run = {"run", "[options] NAME -- CMD [ARG...]",
                                        "run a command while holding a lock", run_main};

static int open_and_run(struct run_job *job, const struct cli_context *context, int *die_of)
{
    const struct run_options *options = job->options;
    struct hf_error err;
    int exit_code = EXIT_HF_USAGE;

    job->take = (struct take){.writer = job->writer,
                              .name = options->name,
                              .label = options->take.label,
                              .label_pid = getpid(),
                              .label_cmd = options->command[0],
                              .signal_fd = job->signals.fd,
                              .quiet = options->skip_ok,
                              .on_open = find_hold,
                              .data = job};
    if (take_open(&job->take, context->store_url, options->take.wait_ms, &err) != HF_OK)
        return cli_stderr_fail(job->writer, &err);
    job->store = job->take.store;
    job->store_fd = cli_store_fd_make(context->store_url, hf_store_url(job->store));
    if (fit_to_store(job))
        exit_code = run_in_store(job, die_of);
    run_environment_clear(job->environment);
    hf_close(job->store);
    return exit_code;
}

static void find_hold(struct take *take)
{
    struct run_job *job = take->data;

    if (run_held_find(take->store, take->name, &job->hold))
        job->held = &job->hold;
}

static int read_options(struct run_options *options, int argc, char **argv, bool *go_on)
{
    static const char *const leftover[] = {"wait", "term", "release", NULL};
    const struct cli_option table[] = {
        TAKE_OPTIONS(&options->take),
        {0, "skip-ok", CLI_FLAG, NULL, "if another holds the lock: say nothing and exit 0", NULL,
         &options->skip_ok, NULL},
        RUN_ENDING_OPTIONS(options),
        {0, "leftover", CLI_CHOICE, "WHAT",
         "processes that CMD left behind: wait (default), term or release", leftover,
         &options->leftover, NULL},
        {0, "max-runtime", CLI_DURATION, "DURATION", "end CMD after this time, exit 124", NULL,
         &options->max_runtime_ms, &options->max_runtime_given},
        {0, "no-reenter", CLI_FLAG, NULL, "refuse if a process above this one holds the lock", NULL,
         &options->no_reenter, NULL},
        {.name = NULL}};
    bool dashes = false;
    int first = cli_parse(&command_run, table, argc, argv, &dashes);
    int bad;

    if (first < 0)
        return cli_parse_exit(first);
    bad = find_command(options, argc, argv, first, dashes);
    if (!bad)
        bad = check_options(options);
    *go_on = !bad;
    return bad;
}

/* NAME -- CMD [ARG...]. The dashes are asked for, so that a forgotten NAME cannot make a lock out
 * of the command. */
static int find_command(struct run_options *options, int argc, char **argv, int first, bool dashes)
{
    bool again = first + 1 < argc && strcmp(argv[first + 1], "--") == 0;
    struct cli_shown shown;

    if (first >= argc || strcmp(argv[first], "--") == 0 || (dashes && !again))
        return cli_usage_error(&command_run, "the name of the lock is missing");
    options->name = argv[first];
    if (first + 1 >= argc)
        return cli_usage_error(
            &command_run, "\"%s\" is the name of the lock; put \"--\" and the command after it",
            cli_shown(&shown, options->name));
    if (!again)
        return cli_usage_error(
            &command_run, "\"--\" is missing before \"%s\"; options go before the name of the lock",
            cli_shown(&shown, argv[first + 1]));
    if (first + 2 >= argc || argv[first + 2][0] == '\0')
        return cli_usage_error(&command_run, "the command is missing after \"--\"");
    options->command = argv + first + 2;
    return 0;
}

static int check_options(struct run_options *options)
{
    char why[RUN_WHY_SIZE];
    int bad = take_check(&command_run, options->name, &options->take);

    if (bad)
        return bad;
    if (options->skip_ok)
        options->take.busy_exit = 0;
    run_choose_grace(options);
    if (options->grace_ms > HF_TTL_MAX_MS)
        return cli_usage_error(&command_run, "--grace: at most 1d");
    if (options->max_runtime_given && options->max_runtime_ms == 0)
        return cli_usage_error(&command_run, "--max-runtime: must be more than 0");
    return run_timing_fits(options, why, sizeof why) ? 0 : cli_usage_error(&command_run, "%s", why);
}

static int run_in_store(struct run_job *job, int *die_of)
{
    if (job->held == NULL)
        return run_under_lease(job, die_of);
    if (!job->options->no_reenter)
        return run_below_hold(job, die_of);
    if (!job->options->skip_ok)
        cli_stderr_say(job->writer,
                       "lock \"%s\" is held by a process above this one, and --no-reenter is given",
                       job->options->name);
    return (int)job->options->take.busy_exit;
}

static int run_under_lease(struct run_job *job, int *die_of)
{
    struct run_outcome outcome = {.status = 0};
    struct hf_error err;
    enum hf_status status = take_the_lock(job, &err);
    bool from_kernel;
    bool ran = false;
    /* A signal that came while we waited, perhaps a moment too late to end the wait: whoever sent
     * it does not want CMD to run. We die of it. */
    bool stop = run_signals_take(&job->signals, die_of, &from_kernel);

    if (status != HF_OK || stop) {
        take_end(&job->take);
        if (status == HF_OK)
            give_back(job, &outcome);
        return stop ? SIGNAL_EXIT_BASE + *die_of : not_taken(job, &err);
    }
    if (!fit_to_lease(job)) {
        take_end(&job->take);
        give_back(job, &outcome);
        return EXIT_HF_USAGE;
    }
    job->life_fd = hf_store_life_fd(job->store);
    job->environment = run_environment(job, NULL);
    if (job->environment == NULL)
        cli_stderr_say(job->writer, "out of memory for the environment of %s",
                       job->options->command[0]);
    else
        ran = run_supervise(job, &outcome);
    give_back(job, &outcome);
    run_supervise_end(job);
    take_end(&job->take);
    return ran ? exit_code_of(job, &outcome, die_of) : EXIT_HF_INTERNAL;
}

static void publish(struct hf_lease *lease, void *data)
{
    struct run_job *job = data;

    run_page_publish(job->page, lease);
}

static enum hf_status take_the_lock(struct run_job *job, struct hf_error *err)
{
    struct hf_acquire_options acquire = {
        .size = sizeof acquire, .ttl_ms = (uint32_t)job->options->take.ttl_ms, .no_keeper = true};

    job->take.on_renewed = publish;
    return take_lock(&job->take, &acquire, &job->lease, err);
}

/* The default is what the store grants, if that is less than 30 s. */
static bool fit_to_store(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t longest_ms = hf_store_max_ttl_ms(job->store);
    char why[RUN_WHY_SIZE];

    if (options->take.ttl_given || longest_ms >= options->take.ttl_ms)
        return true;
    options->take.ttl_ms = longest_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    cli_stderr_say(job->writer, "lock \"%s\": %s", options->name, why);
    return false;
}

/* A store may grant a shorter lease than was asked for: it is then the one that ends the tree. */
static bool fit_to_lease(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t granted_ms = hf_lease_ttl_ms(job->lease);
    char granted[32], asked[32], why[RUN_WHY_SIZE];

    if (granted_ms >= options->take.ttl_ms)
        return true;
    (void)hf__format_duration(granted, sizeof granted, granted_ms);
    (void)hf__format_duration(asked, sizeof asked, options->take.ttl_ms);
    cli_stderr_say(job->writer, "lock \"%s\": the store grants a lease of %s, not of %s",
                   options->name, granted, asked);
    options->take.ttl_ms = granted_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    cli_stderr_say(job->writer, "%s", why);
    return false;
}

static int not_taken(const struct run_job *job, const struct hf_error *err)
{
    if (err->code != HF_BUSY)
        return cli_stderr_fail(job->writer, err);
    if (!job->options->skip_ok)
        (void)cli_stderr_fail(job->writer, err);
    return (int)job->options->take.busy_exit;
}

/* The lock is held further up in this tree: its deadline is watched there, we watch the hold. */
static int run_below_hold(struct run_job *job, int *die_of)
{
    struct run_outcome outcome = {.status = 0};

    (void)close(job->lost_pipe[0]);
    (void)close(job->lost_pipe[1]);
    job->lost_pipe[0] = job->lost_pipe[1] = -1;
    job->environment = run_environment(job, job->held);
    if (job->environment == NULL) {
        cli_stderr_say(job->writer, "out of memory for the environment of %s",
                       job->options->command[0]);
        return EXIT_HF_INTERNAL;
    }
    if (!run_supervise(job, &outcome))
        return EXIT_HF_INTERNAL;
    run_supervise_end(job);
    return exit_code_of(job, &outcome, die_of);
}

/* Releases the lock. What that finds out belongs to the outcome. */
static void give_back(struct run_job *job, struct run_outcome *outcome)
{
    struct hf_error err;
    enum hf_status status = hf_release(job->lease, &err);

    job->lease = NULL;
    if (status == HF_LOST) {
        if (!outcome->lost)
            cli_stderr_say(job->writer, "%s", err.text);
        outcome->lost = true;
    } else if (status != HF_OK) {
        cli_stderr_say(job->writer,
                       "lock \"%s\" could not be released; it will be free when its ttl ends: %s",
                       job->options->name, err.text);
    }
}

static int exit_code_of(const struct run_job *job, const struct run_outcome *outcome, int *die_of)
{
    const char *command = job->options->command[0];

    if (outcome->start_errno) {
        cli_stderr_say(job->writer, "cannot start a process for %s: %s", command,
                       strerror(outcome->start_errno));
        return EXIT_HF_INTERNAL;
    }
    if (outcome->exec_errno) {
        bool missing = outcome->exec_errno == ENOENT || outcome->exec_errno == ENOTDIR;

        cli_stderr_say(job->writer, "%s: %s", command,
                       missing ? "command not found" : strerror(outcome->exec_errno));
        return missing ? EXIT_HF_NOT_FOUND : EXIT_HF_CANNOT_EXEC;
    }
    if (outcome->lost)
        return EXIT_HF_LOST;
    if (outcome->cause == RUN_MAX_RUNTIME)
        return EXIT_HF_MAX_RUNTIME;
    if (outcome->watchdog_died)
        return EXIT_HF_INTERNAL;
    if (WIFEXITED(outcome->status))
        return WEXITSTATUS(outcome->status);
    /* The shell that started us must see that it was the Ctrl-C that ended the command. */
    if (outcome->terminal && WTERMSIG(outcome->status) == SIGINT)
        *die_of = SIGINT;
    return SIGNAL_EXIT_BASE + WTERMSIG(outcome->status);
}
