/* directed.h - histories that chance would not find: the model checker's, played with the real
 * code. */
#ifndef HF_TESTS_SIM_DIRECTED_H
#define HF_TESTS_SIM_DIRECTED_H

#include "world.h"

bool directed(enum sim_mutant mutant);
const char *directed_failure(void);

#endif /* HF_TESTS_SIM_DIRECTED_H */
