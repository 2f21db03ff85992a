/* job.h - one job under a lock, as `run`, `once` and `elect` do it.
 *
 * In this order: run_find_command and run_check_options, run_job_begin, run_job_open, run_job_turn
 * (as often as the command likes), run_job_end. run.h shows the processes of a turn. */
#ifndef HF_CLI_RUN_JOB_H
#define HF_CLI_RUN_JOB_H

#include "cli/run/run.h"

/* The options of a job, and the words after them: options.c */

extern const char *const run_leftover_words[];

/* Their lines in the table of a command. */
#define RUN_OPTIONS(options)                                                                       \
    TAKE_OPTIONS(&(options)->take), {0,                                                            \
                                     "skip-ok",                                                    \
                                     CLI_FLAG,                                                     \
                                     NULL,                                                         \
                                     "if another holds the lock: say nothing and exit 0",          \
                                     NULL,                                                         \
                                     &(options)->skip_ok,                                          \
                                     NULL},                                                        \
        RUN_ENDING_OPTIONS(options),                                                               \
        {0,                                                                                        \
         "leftover",                                                                               \
         CLI_CHOICE,                                                                               \
         "WHAT",                                                                                   \
         "processes that CMD left behind: wait (default), term or release",                        \
         run_leftover_words,                                                                       \
         &(options)->leftover,                                                                     \
         NULL},                                                                                    \
        {0,                                                                                        \
         "max-runtime",                                                                            \
         CLI_DURATION,                                                                             \
         "DURATION",                                                                               \
         "end CMD after this time, exit 124",                                                      \
         NULL,                                                                                     \
         &(options)->max_runtime_ms,                                                               \
         &(options)->max_runtime_given},                                                           \
        EVENTS_OPTIONS(&(options)->events), AUDIT_REQUIRE_OPTIONS(&(options)->require)

/* Finds NAME -- CMD [ARG...] in words, which end with NULL. The dashes are asked for, so that a
 * forgotten NAME cannot make a lock out of the command; dashes: one stood before the words. 0, or
 * EXIT_HF_USAGE after a message. */
int run_find_command(const struct cli_command *command, struct run_options *options, char **words,
                     bool dashes);
/* The same for the options. */
int run_check_options(const struct cli_command *command, struct run_options *options);

/* The job: job.c */

/* Fills *job, catches the signals, opens what has to be open first. The caller may set job->hooks
 * then. False after a message: exit EXIT_HF_INTERNAL. */
bool run_job_begin(struct run_job *job, struct run_options *options);
/* Opens the store, waiting for it as the options say: that limit begins now, and holds for all
 * turns together. False after a message, *exit_code is then for run_job_end. */
bool run_job_open(struct run_job *job, const struct cli_context *context, int *exit_code);
/* Takes the lock, runs CMD, gives the lock back. Returns the exit code, after a message where there
 * is something to say. Can be called again, unless job->die_of is set. */
int run_job_turn(struct run_job *job);
/* Until it is time for another turn. False: a signal came, and we are to die of it. */
bool run_job_pause(struct run_job *job, int64_t until_ns);
/* Closes everything; returns the exit code, unless we die of a signal. */
int run_job_end(struct run_job *job, int exit_code);
/* What an outcome stands for. */
int run_exit_code(const struct run_outcome *outcome);

/* fit.c: the ttl is no longer than the store, or the lease, lets it be. False after a message:
 * there is no time for --grace then. */
bool run_fit_to_store(struct run_job *job);
bool run_fit_to_lease(struct run_job *job);

#endif /* HF_CLI_RUN_JOB_H */
