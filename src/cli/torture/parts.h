/* parts.h - what the parts of `holdfast torture` share: the sweeper, and the ways of telling. */
#ifndef HF_CLI_TORTURE_PARTS_H
#define HF_CLI_TORTURE_PARTS_H

#include "torture/torture.h"

#include <stdio.h>

/* What was left at the end. */
struct torture_sweep {
    bool known;    /* false: the sweeper did not tell; what follows means nothing */
    int forgotten; /* names of which the store has nothing any more */
    /* Of the first name that is still there: why. */
    enum hf_status status;
    char trouble[HF_ERROR_TEXT_SIZE];
    char leaves[HF_ERROR_TEXT_SIZE]; /* what any first use of the store leaves; "" if not known */
};

/* sweeper.c: a process that removes the names when the torture is over, even if that was killed. */
struct torture_sweeper {
    pid_t pid;
    int life;    /* it begins when this is closed, by us or by our end */
    int answers; /* what it says in the end */
};
bool torture_sweeper_start(struct torture_sweeper *sweeper, const struct torture_plan *plan);
/* Lets it begin, and waits for it, but not once stop_fd is readable: then it goes on alone. */
void torture_sweeper_finish(struct torture_sweeper *sweeper, const struct torture_plan *plan,
                            struct torture_sweep *out);

/* All that is told in the end. */
struct torture_report {
    const struct torture_plan *plan;
    struct torture_referee *referee;
    const struct torture_story *story;
    const struct torture_sweep *sweep;
    struct torture_verdict sum;
    const char *shown; /* the store */
};

/* tell.c */
extern const char *const torture_fault_names[TORTURE_FAULTS]; /* "kills", ... */
void torture_print(FILE *out, const struct torture_report *report);
void torture_json(FILE *out, const struct torture_report *report);

/* svg.c: false, with errno, if it cannot be written. */
bool torture_draw(FILE *out, const struct torture_report *report);

#endif /* HF_CLI_TORTURE_PARTS_H */
