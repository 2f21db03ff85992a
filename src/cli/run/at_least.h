/* at_least.h - run --at-least: not again for a while after a start. */
#ifndef HF_CLI_RUN_AT_LEAST_H
#define HF_CLI_RUN_AT_LEAST_H

#include "cli/run/job.h"

#include <holdfast/record.h>

/* The key of its record, whose value is the time in ms since 1970 before which nothing starts, a
 * blank, and the label of who started last. */
#define AT_LEAST_KEY "at-least"

struct at_least {
    int64_t every_ms;
    bool given;
    bool again;       /* the turn found that it is too early, and there is time to wait */
    int64_t until_ns; /* then: when the next turn begins */
    uint64_t unsure;  /* the token with which we left a mark, if it may not be there; 0: none */
};

/* 0, or EXIT_HF_USAGE after a message. */
int at_least_check(const struct cli_command *command, const struct at_least *at_least);
/* Takes the lock and runs CMD; while it is too early, takes turns as long as there is time to wait.
 * The store is open. Returns the exit code for run_job_end. */
int at_least_run(struct at_least *at_least, struct run_job *job);

#endif /* HF_CLI_RUN_AT_LEAST_H */
