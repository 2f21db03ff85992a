/* cmd_elect.c - holdfast elect: stand for election, lead while CMD runs, and stand again.
 *
 * A term is one run of CMD, supervised as by `run`: the lock is given back only when the whole tree
 * is gone. core/elect.c decides whether there is another one, and when. */
#include "cli/elect/notify.h"
#include "cli/run/job.h"

#include "base/base.h"
#include "core/wait.h"
#include "core/elect.h"

#include <holdfast/elect.h>
#include <holdfast/record.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

enum {
    SIGNAL_EXIT_BASE = 128,
    VARIABLE_SIZE = 40,
    UNCHECKED_MS = 1000 /* before a store that could not be looked at is looked at again */
};

/* A candidate, over all its terms. */
struct candidate {
    struct run_options options;
    struct run_job job;
    struct hf__elect elect;
    struct notify notify;
    const char *address; /* NULL: none */
    int restart;         /* enum hf__elect_restart */

    /* Of the present term. */
    struct hf__term term;
    uint64_t number;             /* 0: the lock was not taken */
    enum hf__term_end unstarted; /* how it ended if CMD did not run */
    bool ran;                    /* outcome is set */
    struct run_outcome outcome;
    char variable[VARIABLE_SIZE];
    const char *variables[2];
};

static int read_options(struct candidate *candidate, int argc, char **argv, bool *go_on);
static bool may_stand(struct candidate *candidate, int *exit_code);
static int stand(struct candidate *candidate);
static bool before(struct run_job *job, int *exit_code);
static void after(struct run_job *job, const struct run_outcome *outcome);
static enum hf__term_end end_of(const struct candidate *candidate, int exit_code);
static bool pause_until(struct candidate *candidate, int64_t until_ns, int exit_code);

static int elect_main(const struct cli_context *context, int argc, char **argv)
{
    struct candidate candidate = {.options.take = TAKE_DEFAULTS};
    bool go_on = false;
    int exit_code = read_options(&candidate, argc, argv, &go_on);

    if (!go_on)
        return exit_code;
    candidate.options.take.always_waits = true;
    notify_open(&candidate.notify, candidate.options.grace_ms);
    if (!run_job_begin(&candidate.job, &candidate.options))
        return EXIT_HF_INTERNAL;
    candidate.job.hooks = (struct run_hooks){.before = before, .after = after, .data = &candidate};
    if (run_job_open(&candidate.job, context, &exit_code) && may_stand(&candidate, &exit_code))
        exit_code = stand(&candidate);
    notify_close(&candidate.notify);
    return run_job_end(&candidate.job, exit_code);
}

const struct cli_command command_elect = {"elect", "[options] NAME... -- CMD [ARG...]",
                                          "run a command on one machine of several, its leader",
                                          elect_main};

static int read_options(struct candidate *candidate, int argc, char **argv, bool *go_on)
{
    static const char *const restarts[] = {"always", "on-failure", "no", NULL};
    static const char *const losses[] = {"term", "kill", NULL};
    static const char *const leftovers[] = {"wait", "term", NULL};
    struct run_options *options = &candidate->options;
    struct take_options *take = &options->take;
    const struct cli_option table[] = {
        TAKE_NAMES_OPTIONS(&options->names),
        {0, "restart", CLI_CHOICE, "WHEN",
         "stand again when CMD has ended: always (default), on-failure or no", restarts,
         &candidate->restart, NULL},
        {0, "address", CLI_TEXT, "TEXT", "where the leader can be found, for \"holdfast leader\"",
         NULL, &candidate->address, NULL},
        {0, "ttl", CLI_DURATION, "DURATION",
         "how long the lease lasts unless renewed; default: 30s, or what the store grants", NULL,
         &take->ttl_ms, &take->ttl_given},
        {0, "label", CLI_TEXT, "TEXT", "what others see as the leader; default: host/pid/command",
         NULL, &take->label, NULL},
        {0, "grace", CLI_DURATION, "DURATION",
         "from TERM to KILL; default: 5s, at most a third of the ttl", NULL, &options->grace_ms,
         &options->grace_given},
        {0, "on-loss", CLI_CHOICE, "WHAT", "if the lock is lost: term (default) or kill", losses,
         &options->on_loss, NULL},
        {0, "leftover", CLI_CHOICE, "WHAT",
         "processes that CMD left behind: wait (default) or term", leftovers, &options->leftover,
         NULL},
        EVENTS_OPTIONS(&options->events),
        AUDIT_REQUIRE_OPTIONS(&options->require),
        {.name = NULL}};
    bool dashes = false;
    int first = cli_parse(&command_elect, table, argc, argv, &dashes);
    int bad;

    if (first < 0)
        return cli_parse_exit(first);
    bad = run_find_command(&command_elect, options, argv + first, dashes);
    if (!bad)
        bad = run_check_options(&command_elect, options);
    if (!bad && candidate->address != NULL && !hf__text_valid(candidate->address, HF_ADDRESS_MAX))
        bad = cli_usage_error(&command_elect, "--address: 1 to %d bytes, and no control characters",
                              HF_ADDRESS_MAX);
    *go_on = !bad;
    return bad;
}

static bool may_stand(struct candidate *candidate, int *exit_code)
{
    struct run_job *job = &candidate->job;
    const char *url = hf_store_url(job->store);
    struct hf_error err;

    if (candidate->address != NULL && (hf_store_features(job->store) & HF_FEATURE_RECORDS) == 0)
        (void)hf__fail_lock(&err, HF_UNSUPPORTED, job->options->name, url,
                            ": --address needs records, which this kind of store does not keep");
    else if (job->hold_count > 0)
        (void)hf__fail_lock(&err, HF_BUSY, job->holds[0].name, url,
                            " is held by a process above this one");
    else
        return true;
    *exit_code = cli_stderr_fail(job->writer, &err);
    return false;
}

static int stand(struct candidate *candidate)
{
    struct run_job *job = &candidate->job;

    hf__elect_init(&candidate->elect, (enum hf__elect_restart)candidate->restart);
    notify_ready(&candidate->notify, job->options->name);
    for (;;) {
        struct hf__elect_step step;
        uint32_t dice;
        int exit_code;

        candidate->number = 0;
        candidate->ran = false;
        candidate->unstarted = HF__TERM_FAILED;
        exit_code = run_job_turn(job);
        if (candidate->number == 0 && job->unchecked && !job->die_of &&
            run_job_pause(job, hf__now_ns() + UNCHECKED_MS * HF__NS_PER_MS))
            continue;
        if (candidate->number == 0 || job->die_of)
            return exit_code;
        candidate->term.ended_ns = hf__now_ns();
        candidate->term.end = end_of(candidate, exit_code);
        hf__random(&dice, sizeof dice);
        step = hf__elect_term_over(&candidate->elect, &candidate->term, dice);
        if (!step.again)
            return exit_code;
        if (!pause_until(candidate, step.not_before_ns, exit_code))
            return SIGNAL_EXIT_BASE + job->die_of;
    }
}

/* The lock is ours: others learn where we are before CMD is there. */
static bool before(struct run_job *job, int *exit_code)
{
    struct candidate *candidate = job->hooks.data;
    struct hf_error err;
    bool passes;

    candidate->term.began_ns = hf__now_ns();
    candidate->number = hf_lease_token(job->lease);
    (void)snprintf(candidate->variable, sizeof candidate->variable, "HOLDFAST_TERM=%" PRIu64,
                   candidate->number);
    candidate->variables[0] = candidate->variable;
    job->variables = candidate->variables;
    if (candidate->address == NULL || hf_record_put(job->lease, HF_LEADER_KEY, candidate->address,
                                                    strlen(candidate->address), 0, &err) == HF_OK) {
        notify_leader(&candidate->notify, job->lease);
        return true;
    }
    *exit_code = cli_stderr_fail(job->writer, &err);
    run_events_failed(job, cli_text_of(&err));
    /* What does not pass by itself ends us. */
    passes = err.code == HF_LOST || hf__wait_may_pass(err.code);
    candidate->unstarted = passes ? HF__TERM_LOST : HF__TERM_TOLD;
    return false;
}

static void after(struct run_job *job, const struct run_outcome *outcome)
{
    struct candidate *candidate = job->hooks.data;

    notify_standby(&candidate->notify, job->options->name);
    candidate->ran = outcome != NULL;
    if (outcome != NULL)
        candidate->outcome = *outcome;
}

/* HUP makes many programs read their settings again; one that died of it was told to end. */
static bool told_to_end(const struct run_outcome *outcome)
{
    bool of_signal = WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) == SIGHUP;

    return outcome->told_to_end != 0 && (outcome->told_to_end != SIGHUP || of_signal);
}

static enum hf__term_end end_of(const struct candidate *candidate, int exit_code)
{
    const struct run_outcome *outcome = &candidate->outcome;
    bool own_code = WIFEXITED(outcome->status) && WEXITSTATUS(outcome->status) == exit_code;

    if (!candidate->ran)
        return candidate->unstarted;
    if (told_to_end(outcome))
        return HF__TERM_TOLD;
    /* Only the release may have found out. */
    if (outcome->lost || (exit_code == EXIT_HF_LOST && !own_code))
        return HF__TERM_LOST;
    return exit_code == 0 ? HF__TERM_DONE : HF__TERM_FAILED;
}

/* False: a signal came, and the job dies of it. */
static bool pause_until(struct candidate *candidate, int64_t until_ns, int exit_code)
{
    struct run_job *job = &candidate->job;
    int64_t pause_ms = (until_ns - candidate->term.ended_ns) / HF__NS_PER_MS;
    char led[32], pause[32];

    (void)hf__format_duration(
        led, sizeof led, (candidate->term.ended_ns - candidate->term.began_ns) / HF__NS_PER_MS);
    (void)hf__format_duration(pause, sizeof pause, pause_ms);
    if (pause_ms > 0) {
        cli_stderr_say(job->writer,
                       "term %" PRIu64 " of \"%s\" was over after %s (exit code %d); standing "
                       "again in %s",
                       candidate->number, job->options->name, led, exit_code, pause);
        EVENTS_SAY(job->events, EVENT_BACKING_OFF, EVENT_NUMBER("pause_ms", pause_ms));
    }
    return run_job_pause(job, until_ns);
}
