/* job.c - one job under a lock, from opening the store to the release: what `run` does once, `once`
 * and `elect` as often as they must. */
#include "cli/run/job.h"

#include "base/base.h"
#include "base/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_EXIT_BASE = 128 };

static void find_hold(struct take *take);
static void set_name(struct run_job *job, const char *name);
static bool carries_what_is_required(struct run_job *job, uint32_t ttl_ms, int *exit_code);
static int turn(struct run_job *job);
static bool prepare_turn(struct run_job *job);
static int turn_under_lease(struct run_job *job);
static const char *first_name(const struct run_job *job);
static enum hf_status take_the_lock(struct run_job *job, struct hf_error *err);
static int cancelled(struct run_job *job);
static int not_taken(struct run_job *job, const struct hf_error *err);
static int run_with_lease(struct run_job *job, struct run_outcome *outcome);
static int run_below_hold(struct run_job *job);
static bool run_command(struct run_job *job, struct run_outcome *outcome);
static int finish(struct run_job *job, const struct run_outcome *outcome);
static void give_back(struct run_job *job, struct run_outcome *outcome);
static void say_not_started(struct run_job *job, const struct run_outcome *outcome);

bool run_job_begin(struct run_job *job, struct run_options *options)
{
    *job = (struct run_job){.options = options,
                            .lost_pipe = {-1, -1},
                            .output = {-1, -1},
                            .life_fd = -1,
                            .store_fd = -1,
                            .exit_code = RUN_EXIT_AS_COMMAND};
    if (!run_signals_begin(&job->signals))
        return false;
    /* Before anything else is open, so that its number has one digit: dash(1) redirects from no
     * other. */
    if (pipe2(job->lost_pipe, O_CLOEXEC) < 0) {
        cli_error("cannot open a pipe: %s", strerror(errno));
        return false;
    }
    job->writer = cli_stderr_open();
    if (job->writer == NULL) {
        cli_error("out of memory");
        return false;
    }
    job->events = events_open(&options->events, options->name, job->writer);
    return true;
}

bool run_job_open(struct run_job *job, const struct cli_context *context, int *exit_code)
{
    const struct run_options *options = job->options;
    struct hf_error err;

    job->take = (struct take){.writer = job->writer,
                              .name = options->name,
                              .names = job->wanted,
                              .label = options->take.label,
                              .label_pid = getpid(),
                              .label_cmd = options->command[0],
                              .signal_fd = job->signals.fd,
                              .quiet = options->skip_ok,
                              .always_waits = options->take.always_waits,
                              .on_open = find_hold,
                              .on_wait = run_events_waiting,
                              .data = job};
    run_events_begin(job);
    if (take_open(&job->take, context->store_url, options->take.wait_ms, &err) != HF_OK) {
        *exit_code = cli_stderr_fail(job->writer, &err);
        run_events_failed(job, cli_text_of(&err));
        run_events_ended(job, *exit_code);
        return false;
    }
    events_set_store(job->events, hf_store_url(job->take.store));
    job->store = job->take.store;
    job->store_fd = cli_store_fd_make(context->store_url, hf_store_url(job->store));
    job->url = context->store_url;
    *exit_code = EXIT_HF_USAGE;
    if (!run_fit_to_store(job))
        return false;
    if (carries_what_is_required(job, 0, exit_code))
        return true;
    run_events_ended(job, *exit_code);
    return false;
}

int run_job_turn(struct run_job *job)
{
    int exit_code;

    if (job->times.ended)
        run_events_begin(job);
    job->again = false;
    exit_code = turn(job);
    if (!job->again)
        run_events_ended(job, exit_code);
    return exit_code;
}

static int turn(struct run_job *job)
{
    if (!prepare_turn(job))
        return EXIT_HF_INTERNAL;
    if (job->hold_count == 0 || (job->held == NULL && !job->options->no_reenter))
        return turn_under_lease(job);
    set_name(job, job->holds[0].name);
    if (!job->options->no_reenter)
        return run_below_hold(job);
    if (!job->options->skip_ok)
        cli_stderr_say(job->writer,
                       "lock \"%s\" is held by a process above this one, and --no-reenter is given",
                       job->options->name);
    run_events_skipped(job, "a process above this one holds the lock");
    return (int)job->options->take.busy_exit;
}

bool run_job_pause(struct run_job *job, int64_t until_ns)
{
    const struct hf__patience patience = {.deadline_ns = HF_NEVER, .cancel_fd = job->signals.fd};
    bool from_kernel;

    return hf__patience_pause(&patience, until_ns) != HF__WAITED_CANCELLED ||
           !run_signals_take(&job->signals, &job->die_of, &from_kernel);
}

int run_job_end(struct run_job *job, int exit_code)
{
    int code = job->die_of ? SIGNAL_EXIT_BASE + job->die_of : exit_code;

    if (!job->times.ended)
        run_events_ended(job, code);
    run_environment_clear(job->environment);
    hf_close(job->store);
    events_close(job->events);
    cli_stderr_close(job->writer);
    return job->die_of ? cli_die_of(job->die_of) : exit_code;
}

int run_exit_code(const struct run_outcome *outcome)
{
    if (outcome->start_errno)
        return EXIT_HF_INTERNAL;
    if (outcome->exec_errno == ENOENT || outcome->exec_errno == ENOTDIR)
        return EXIT_HF_NOT_FOUND;
    if (outcome->exec_errno)
        return EXIT_HF_CANNOT_EXEC;
    if (outcome->lost)
        return EXIT_HF_LOST;
    if (outcome->cause == RUN_MAX_RUNTIME)
        return EXIT_HF_MAX_RUNTIME;
    if (outcome->watchdog_died)
        return EXIT_HF_INTERNAL;
    if (WIFEXITED(outcome->status))
        return WEXITSTATUS(outcome->status);
    return SIGNAL_EXIT_BASE + WTERMSIG(outcome->status);
}

/* Those of our locks that are held above us need not be taken. Of the rest, those whose names do
 * not come after all that is held above us must not be waited for: somebody else may wait in the
 * other order. */
static void find_hold(struct take *take)
{
    struct run_job *job = take->data;
    const struct take_names *names = &job->options->names;

    take->kind = names->kind;
    for (size_t i = 0; i < names->count; i++)
        if (run_held_find(take->store, names->list[i], &job->holds[job->hold_count]))
            job->hold_count++;
        else
            job->wanted[take->count++] = names->list[i];
    /* One of several, or all of them. */
    if (job->hold_count > 0 && (take->count == 0 || take->kind != TAKE_ALL)) {
        job->hold_count = take->count == 0 && take->kind == TAKE_ALL ? job->hold_count : 1;
        job->held = &job->holds[0];
    } else if (names->all) {
        run_held_last(take->store, job->above);
        take->wait_above = job->above[0] != '\0' ? job->above : NULL;
    }
    if (job->held == NULL && take->count == 1) {
        take->kind = take->wait_above != NULL ? TAKE_ALL : TAKE_ONE;
        take->name = job->wanted[0];
    }
}

/* From here on messages, records and CMD speak of what was taken. */
static void set_name(struct run_job *job, const char *name)
{
    (void)snprintf(job->name, sizeof job->name, "%s", name);
    job->options->name = job->name;
    events_set_lock(job->events, job->name);
}

/* What a turn uses up. Nobody else has the page of the turn before any more, but a fresh one needs
 * no proof of that. */
static bool prepare_turn(struct run_job *job)
{
    if (job->page != NULL)
        (void)munmap(job->page, sizeof *job->page);
    run_environment_clear(job->environment);
    job->environment = NULL;
    job->page =
        mmap(NULL, sizeof *job->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job->page == MAP_FAILED)
        job->page = NULL;
    if (job->page != NULL && (job->lost_pipe[0] >= 0 || pipe2(job->lost_pipe, O_CLOEXEC) == 0))
        return true;
    cli_stderr_say(job->writer, "cannot share memory or open a pipe: %s", strerror(errno));
    return false;
}

static int turn_under_lease(struct run_job *job)
{
    struct run_outcome outcome = {.status = 0};
    struct hf_error err;
    int exit_code = 0;
    bool from_kernel;
    enum hf_status status = take_the_lock(job, &err);

    /* A signal that came while we waited, perhaps a moment too late to end the wait: whoever sent
     * it does not want CMD to run. We die of it. */
    if (status == HF_OK) {
        set_name(job, first_name(job));
        run_events_acquired(job);
    }
    if (run_signals_take(&job->signals, &job->die_of, &from_kernel))
        exit_code = cancelled(job);
    else if (status != HF_OK)
        exit_code = not_taken(job, &err);
    else if (!run_fit_to_lease(job))
        exit_code = EXIT_HF_USAGE;
    else if (!carries_what_is_required(job, (uint32_t)job->options->take.ttl_ms, &exit_code))
        ; /* it is not the server from before the wait */
    else if (job->hooks.before == NULL || job->hooks.before(job, &exit_code))
        return run_with_lease(job, &outcome);
    take_end(&job->take);
    if (status == HF_OK)
        give_back(job, &outcome);
    return exit_code;
}

/* With --all the first by name; some of them may be held above us. */
static const char *first_name(const struct run_job *job)
{
    const char *first = hf_lease_name(job->lease);

    for (size_t i = 0; i < job->hold_count; i++)
        if (strcmp(job->holds[i].name, first) < 0)
            first = job->holds[i].name;
    return first;
}

static int run_with_lease(struct run_job *job, struct run_outcome *outcome)
{
    bool ran;
    int exit_code;

    job->life_fd = hf_store_life_fd(job->store);
    ran = run_command(job, outcome);
    if (job->hooks.after != NULL)
        job->hooks.after(job, ran ? outcome : NULL);
    give_back(job, outcome);
    run_supervise_end(job);
    take_end(&job->take);
    exit_code = ran ? finish(job, outcome) : EXIT_HF_INTERNAL;
    return job->exit_code == RUN_EXIT_AS_COMMAND ? exit_code : job->exit_code;
}

static void publish(struct hf_lease *lease, void *data)
{
    struct run_job *job = data;

    run_page_publish(job->page, job->take.leases, job->take.taken);
    run_events_renewed(job, lease);
}

static enum hf_status take_the_lock(struct run_job *job, struct hf_error *err)
{
    struct hf_acquire_options acquire = {
        .size = sizeof acquire, .ttl_ms = (uint32_t)job->options->take.ttl_ms, .no_keeper = true};

    job->take.on_renewed = publish;
    return take_lock(&job->take, &acquire, &job->lease, err);
}

/* Before we wait for the lock, and again once it is ours: it may be another server by then. */
static bool carries_what_is_required(struct run_job *job, uint32_t ttl_ms, int *exit_code)
{
    const struct audit_lock lock = {
        .name = job->options->name, .url = job->url, .ttl_ms = ttl_ms, .writer = job->writer};
    char why[AUDIT_WHY_SIZE];
    int bad = audit_require_met(&job->options->require, &lock, why);

    job->unchecked = bad == EXIT_HF_UNAVAILABLE;
    if (bad == 0)
        return true;
    run_events_failed(job, why);
    *exit_code = bad;
    return false;
}

static int cancelled(struct run_job *job)
{
    char reason[32];

    (void)snprintf(reason, sizeof reason, "signal %d while waiting", job->die_of);
    run_events_failed(job, reason);
    return SIGNAL_EXIT_BASE + job->die_of;
}

static int not_taken(struct run_job *job, const struct hf_error *err)
{
    if (err->code != HF_BUSY) {
        run_events_failed(job, cli_text_of(err));
        return cli_stderr_fail(job->writer, err);
    }
    run_events_skipped(job, cli_text_of(err));
    if (!job->options->skip_ok)
        (void)cli_stderr_fail(job->writer, err);
    if (job->take.wait_above != NULL && hf__now_ns() < job->take.until_ns)
        cli_stderr_say(job->writer,
                       "not waited for: a process above this one holds \"%s\", and whoever waits "
                       "out of the order of names may wait for ever",
                       job->take.wait_above);
    return (int)job->options->take.busy_exit;
}

/* The lock is held further up in this tree: its deadline is watched there, we watch the hold. */
static int run_below_hold(struct run_job *job)
{
    struct run_outcome outcome = {.status = 0};

    (void)close(job->lost_pipe[0]);
    (void)close(job->lost_pipe[1]);
    job->lost_pipe[0] = job->lost_pipe[1] = -1;
    if (!run_command(job, &outcome))
        return EXIT_HF_INTERNAL;
    run_supervise_end(job);
    return finish(job, &outcome);
}

/* False after a message if the watchdog could not be started. */
static bool run_command(struct run_job *job, struct run_outcome *outcome)
{
    job->environment = run_environment(job);
    if (job->environment == NULL) {
        cli_stderr_say(job->writer, "out of memory for the environment of %s",
                       job->options->command[0]);
        return false;
    }
    run_events_started(job);
    if (!run_supervise(job, outcome))
        return false;
    run_events_exited(job, outcome);
    say_not_started(job, outcome);
    return true;
}

static int finish(struct run_job *job, const struct run_outcome *outcome)
{
    int exit_code = run_exit_code(outcome);

    /* The shell that started us must see that it was the Ctrl-C that ended the command. */
    if (outcome->terminal && exit_code == SIGNAL_EXIT_BASE + SIGINT && WIFSIGNALED(outcome->status))
        job->die_of = SIGINT;
    return exit_code;
}

static void say_not_started(struct run_job *job, const struct run_outcome *outcome)
{
    const char *command = job->options->command[0];

    if (outcome->start_errno || outcome->exec_errno)
        run_events_failed(
            job, strerror(outcome->start_errno ? outcome->start_errno : outcome->exec_errno));
    if (outcome->start_errno)
        cli_stderr_say(job->writer, "cannot start a process for %s: %s", command,
                       strerror(outcome->start_errno));
    else if (outcome->exec_errno)
        cli_stderr_say(job->writer, "%s: %s", command,
                       run_exit_code(outcome) == EXIT_HF_NOT_FOUND ? "command not found"
                                                                   : strerror(outcome->exec_errno));
}

/* Releases the lock. What that finds out belongs to the outcome. */
static void give_back(struct run_job *job, struct run_outcome *outcome)
{
    struct hf_error err;
    enum hf_status status = take_give_back(&job->take, &err);

    job->lease = NULL;
    if (status == HF_OK)
        run_events_released(job);
    if (status == HF_LOST) {
        if (!outcome->lost)
            cli_stderr_say(job->writer, "%s", err.text);
        run_events_lost(job, err.text);
        outcome->lost = true;
    } else if (status != HF_OK) {
        run_events_failed(job, err.text);
        take_say_not_released(job->writer, job->options->name, &err);
    }
}
