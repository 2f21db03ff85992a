/* crash_steps.h - more scenes, for programs that reach the steps of the store. */
#ifndef HF_TESTS_CRASH_STEPS_H
#define HF_TESTS_CRASH_STEPS_H

#include "crash.h"

enum { STEP_SCENARIOS = 6 };
extern const struct scenario step_scenarios[STEP_SCENARIOS];

#endif /* HF_TESTS_CRASH_STEPS_H */
