/* cmd_run.c - holdfast run: a command under a lock.
 *
 * The story: take the lock (or find that a process above us holds it), start CMD under a guard,
 * keep the lease until the whole tree is gone, give the lock back. run.h shows the processes. */
#include "cli/run.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_CODE_MAX = 255, SIGNAL_EXIT_BASE = 128 };

/* The words as they were given, before they are put together. */
struct given {
    bool no_wait;
    bool wait;
    bool max_runtime;
    uint64_t busy_exit;
};

static int read_options(struct run_options *options, int argc, char **argv, bool *go_on);
static int find_command(struct run_options *options, int argc, char **argv, int first, bool dashes);
static int check_options(struct run_options *options, struct given *given);
static int open_and_run(struct run_job *job, const struct cli_context *context, int *die_of);
static int run_in_store(struct run_job *job, const struct run_held *held, int *die_of);
static int run_under_lease(struct run_job *job, int *die_of);
static enum hf_status take_lock(struct run_job *job, struct hf_error *err);
static bool fit_to_store(struct run_job *job);
static bool fit_to_lease(struct run_job *job);
static int not_taken(const struct run_job *job, const struct hf_error *err);
static int run_below_hold(struct run_job *job, const struct run_held *held, int *die_of);
static void give_back(struct run_job *job, struct run_outcome *outcome);
static int exit_code_of(const struct run_job *job, const struct run_outcome *outcome, int *die_of);

static const struct cli_command *self(void)
{
    return cli_find("run");
}

int cmd_run(const struct cli_context *context, int argc, char **argv)
{
    struct run_options options = {
        .ttl_ms = HF_TTL_DEFAULT_MS, .wait_ms = -1, .busy_exit = EXIT_HF_BUSY};
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
    job.voice = run_voice_open();
    if (!job.voice) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    exit_code = open_and_run(&job, context, &die_of);
    run_voice_close(job.voice);
    return die_of ? cli_die_of(die_of) : exit_code;
}

static int open_and_run(struct run_job *job, const struct cli_context *context, int *die_of)
{
    struct run_door door;
    struct run_held held;
    struct hf_error err;
    struct run_patience patience = run_patience_of(job->options->wait_ms);
    run_door_open(&door, job->signals.fd, NULL);
    enum hf_status status =
        run_open_store(context->store_url, &patience, job->voice, &job->store, &err);
    bool above = status == HF_OK && run_held_find(job->store, job->options->name, &held);
    run_door_close(&door);
    if (status != HF_OK)
        return run_fail(job->voice, &err);
    job->patience = patience;
    job->store_fd = cli_store_fd_make(context->store_url, hf_store_url(job->store));
    int exit_code = EXIT_HF_USAGE;
    if (fit_to_store(job))
        exit_code = run_in_store(job, above ? &held : NULL, die_of);
    run_environment_clear(job->environment);
    hf_close(job->store);
    return exit_code;
}

static int read_options(struct run_options *options, int argc, char **argv, bool *go_on)
{
    static const char *const on_loss[] = {"term", "kill", "warn", NULL};
    static const char *const leftover[] = {"wait", "term", "release", NULL};
    struct given given = {.busy_exit = EXIT_HF_BUSY};
    const struct cli_option table[] = {
        {'n', "no-wait", CLI_FLAG, NULL,
         "fail at once if another holds the lock or the store is down", NULL, &given.no_wait, NULL},
        {'w', "wait", CLI_DURATION, "DURATION", "wait so long for the lock; by default without end",
         NULL, &options->wait_ms, &given.wait},
        {'E', "busy-exit", CLI_NUMBER, "CODE",
         "exit code if another holds the lock; 75 if not given", NULL, &given.busy_exit, NULL},
        {0, "skip-ok", CLI_FLAG, NULL, "another holds the lock: say nothing and exit 0", NULL,
         &options->skip_ok, NULL},
        {0, "ttl", CLI_DURATION, "DURATION",
         "how long the lease lasts unless renewed; 30s, or what the store grants", NULL,
         &options->ttl_ms, &options->ttl_given},
        {0, "grace", CLI_DURATION, "DURATION", "from TERM to KILL; 5s, at most a third of the ttl",
         NULL, &options->grace_ms, &options->grace_given},
        {0, "on-loss", CLI_CHOICE, "WHAT", "the lock is lost: term (default), kill, or warn",
         on_loss, &options->on_loss, NULL},
        {0, "leftover", CLI_CHOICE, "WHAT",
         "processes that CMD left behind: wait (default), term, or release", leftover,
         &options->leftover, NULL},
        {0, "max-runtime", CLI_DURATION, "DURATION", "end CMD after this time, exit 124", NULL,
         &options->max_runtime_ms, &given.max_runtime},
        {0, "no-reenter", CLI_FLAG, NULL, "refuse if a process above us holds the lock", NULL,
         &options->no_reenter, NULL},
        {0, "label", CLI_TEXT, "TEXT", "what others see as the holder; host/pid/CMD", NULL,
         &options->label, NULL},
        {.name = NULL}};
    bool dashes = false;
    int first = cli_parse(self(), table, argc, argv, &dashes);
    if (first < 0)
        return cli_parse_exit(first);
    int bad = find_command(options, argc, argv, first, dashes);
    if (!bad)
        bad = check_options(options, &given);
    if (!bad && given.max_runtime && options->max_runtime_ms == 0)
        bad = cli_usage_error(self(), "--max-runtime: must be more than 0");
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
        return cli_usage_error(self(), "the name of the lock is missing");
    options->name = argv[first];
    if (first + 1 >= argc)
        return cli_usage_error(self(), "'%s' is the lock; after it come '--' and the command",
                               cli_shown(&shown, options->name));
    if (!again)
        return cli_usage_error(
            self(), "'--' is missing before '%s'; options go before the name of the lock",
            cli_shown(&shown, argv[first + 1]));
    if (first + 2 >= argc || argv[first + 2][0] == '\0')
        return cli_usage_error(self(), "the command is missing after '--'");
    options->command = argv + first + 2;
    return 0;
}

static int check_options(struct run_options *options, struct given *given)
{
    char why[RUN_WHY_SIZE];
    if (!cli_check_name(self(), options->name) || !cli_check_ttl(self(), options->ttl_ms))
        return EXIT_HF_USAGE;
    if (given->busy_exit > EXIT_CODE_MAX)
        return cli_usage_error(self(), "--busy-exit: an exit code is 0 to %d", EXIT_CODE_MAX);
    options->busy_exit = options->skip_ok ? 0 : (int)given->busy_exit;
    if (given->no_wait && given->wait)
        return cli_usage_error(self(), "--no-wait and --wait exclude each other");
    if (given->no_wait)
        options->wait_ms = 0;
    run_choose_grace(options);
    if (options->grace_ms > HF_TTL_MAX_MS)
        return cli_usage_error(self(), "--grace: at most a day");
    return run_timing_fits(options, why, sizeof why) ? 0 : cli_usage_error(self(), "%s", why);
}

static int run_in_store(struct run_job *job, const struct run_held *held, int *die_of)
{
    if (!held)
        return run_under_lease(job, die_of);
    if (!job->options->no_reenter)
        return run_below_hold(job, held, die_of);
    if (!job->options->skip_ok)
        run_say(job->voice,
                "lock '%s' is held by a process above this one, and --no-reenter is given",
                job->options->name);
    return job->options->busy_exit;
}

static int run_under_lease(struct run_job *job, int *die_of)
{
    struct run_wait wait = {.voice = job->voice,
                            .store = job->store,
                            .name = job->options->name,
                            .quiet = job->options->skip_ok};
    struct run_outcome outcome = {.status = 0};
    struct hf_error err;
    job->wait = &wait;
    enum hf_status status = take_lock(job, &err);
    bool from_kernel;
    bool ran = false;
    /* A signal that came while we waited, perhaps a moment too late to end the wait: whoever sent
     * it does not want CMD to run. We die of it. */
    bool stop = run_signals_take(&job->signals, die_of, &from_kernel);
    if (status != HF_OK || stop) {
        run_wait_end(&wait);
        if (status == HF_OK)
            give_back(job, &outcome);
        return stop ? SIGNAL_EXIT_BASE + *die_of : not_taken(job, &err);
    }
    if (!fit_to_lease(job)) {
        run_wait_end(&wait);
        give_back(job, &outcome);
        return EXIT_HF_USAGE;
    }
    job->life_fd = hf_store_life_fd(job->store);
    job->environment = run_environment(job, NULL);
    if (!job->environment)
        run_say(job->voice, "out of memory for the environment of %s", job->options->command[0]);
    else
        ran = run_supervise(job, &outcome);
    give_back(job, &outcome);
    run_supervise_end(job);
    run_wait_end(&wait);
    return ran ? exit_code_of(job, &outcome, die_of) : EXIT_HF_INTERNAL;
}

static void publish(struct hf_lease *lease, int64_t remaining_ms, void *data)
{
    struct run_job *job = data;
    (void)remaining_ms; /* is a moment old already */
    run_page_publish(job->page, lease);
}

static void trouble(const struct hf_error *why, void *data)
{
    struct run_job *job = data;
    run_wait_trouble(job->wait, why);
}

/* "host/pid/command". Not the arguments: there may be a password among them. */
static void default_label(char *out, size_t size, const char *command)
{
    char host[65] = "localhost";
    const char *slash = strrchr(command, '/');
    gethostname(host, sizeof host - 1);
    snprintf(out, size, "%s/%d/%s", host, (int)getpid(), slash && slash[1] ? slash + 1 : command);
}

static enum hf_status take_lock(struct run_job *job, struct hf_error *err)
{
    const struct run_options *options = job->options;
    char label[HF_LABEL_MAX + 1];
    struct hf_acquire_options acquire = {.size = sizeof acquire,
                                         .ttl_ms = (uint32_t)options->ttl_ms,
                                         .label = options->label ? options->label : label,
                                         .cancel_fd = job->signals.fd,
                                         .no_keeper = true,
                                         .on_renewed = publish,
                                         .on_trouble = trouble,
                                         .data = job};
    default_label(label, sizeof label, options->command[0]);
    return run_take(job->wait, &job->patience, &acquire, &job->lease, err);
}

/* The default is what the store grants, if that is less than 30 s. */
static bool fit_to_store(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t longest_ms = hf_store_max_ttl_ms(job->store);
    char why[RUN_WHY_SIZE];
    if (options->ttl_given || longest_ms >= options->ttl_ms)
        return true;
    options->ttl_ms = longest_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    run_say(job->voice, "lock '%s': %s", options->name, why);
    return false;
}

/* A store may grant a shorter lease than was asked for: it is then the one that ends the tree. */
static bool fit_to_lease(struct run_job *job)
{
    struct run_options *options = job->options;
    int64_t granted_ms = hf_lease_ttl_ms(job->lease);
    char granted[32], asked[32], why[RUN_WHY_SIZE];
    if (granted_ms >= options->ttl_ms)
        return true;
    hf__format_duration(granted, sizeof granted, granted_ms);
    hf__format_duration(asked, sizeof asked, options->ttl_ms);
    run_say(job->voice, "lock '%s': the store grants a lease of %s, not of %s", options->name,
            granted, asked);
    options->ttl_ms = granted_ms;
    run_choose_grace(options);
    if (run_timing_fits(options, why, sizeof why))
        return true;
    run_say(job->voice, "%s", why);
    return false;
}

static int not_taken(const struct run_job *job, const struct hf_error *err)
{
    if (err->code != HF_BUSY)
        return run_fail(job->voice, err);
    if (!job->options->skip_ok)
        run_fail(job->voice, err);
    return job->options->busy_exit;
}

/* The lock is held further up in this tree: its deadline is watched there, we watch the hold. */
static int run_below_hold(struct run_job *job, const struct run_held *held, int *die_of)
{
    struct run_outcome outcome = {.status = 0};
    close(job->lost_pipe[0]);
    close(job->lost_pipe[1]);
    job->lost_pipe[0] = job->lost_pipe[1] = -1;
    job->held = held;
    job->environment = run_environment(job, held);
    if (!job->environment) {
        run_say(job->voice, "out of memory for the environment of %s", job->options->command[0]);
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
            run_say(job->voice, "%s", err.text);
        outcome->lost = true;
    } else if (status != HF_OK) {
        run_say(job->voice, "lock '%s' could not be released, it is free when its ttl ends: %s",
                job->options->name, err.text);
    }
}

static int exit_code_of(const struct run_job *job, const struct run_outcome *outcome, int *die_of)
{
    const char *command = job->options->command[0];
    if (outcome->start_errno) {
        run_say(job->voice, "cannot start a process for %s: %s", command,
                strerror(outcome->start_errno));
        return EXIT_HF_INTERNAL;
    }
    if (outcome->exec_errno) {
        bool missing = outcome->exec_errno == ENOENT || outcome->exec_errno == ENOTDIR;
        run_say(job->voice, "%s: %s", command,
                missing ? "command not found" : strerror(outcome->exec_errno));
        return missing ? EXIT_HF_NOT_FOUND : EXIT_HF_CANNOT_EXEC;
    }
    if (outcome->lost)
        return EXIT_HF_LOST;
    if (outcome->cause == RUN_MAX_RUNTIME)
        return EXIT_HF_MAX_RUNTIME;
    if (outcome->guard_died)
        return EXIT_HF_INTERNAL;
    if (WIFEXITED(outcome->status))
        return WEXITSTATUS(outcome->status);
    /* The shell that started us must see that it was the Ctrl-C that ended the command. */
    if (outcome->terminal && WTERMSIG(outcome->status) == SIGINT)
        *die_of = SIGINT;
    return SIGNAL_EXIT_BASE + WTERMSIG(outcome->status);
}
