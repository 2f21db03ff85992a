/* steps.h - the steps of the embedded store, answered: see stores/file/step.h. Programs that are to
 * reach them link the store's objects with HF_STEPS; the Makefile says which. */
#ifndef HF_TESTS_STEPS_H
#define HF_TESTS_STEPS_H

#include "faultkit.h"

#define STEP_NAME_SIZE 32
#define STEP_NAMES_MAX 64

/* Called at each step, if not NULL. Without it, a kit_plan for KIT_STEP is met. */
extern void (*steps_hook)(const char *name);
/* Sends this process a signal when it comes to a step of this name for the first time. */
void steps_signal_at(const char *name, int number);

/* The names of steps where a plan was met, in this process and its children; the first call makes
 * room for them. */
struct steps_met {
    char last[STEP_NAME_SIZE];
    int count;
    char names[STEP_NAMES_MAX][STEP_NAME_SIZE];
};
struct steps_met *steps_met(void);
/* Fails if a step in the sources below src/stores/file was never met; those that `except` names,
 * with a space on either side of each, need not be. */
void steps_all_met(const char *except);

void hf__step(const char *name);

#endif /* HF_TESTS_STEPS_H */
