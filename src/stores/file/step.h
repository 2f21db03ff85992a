/* step.h - the steps of a change, named.
 *
 * A process may be killed or stopped between any two of them, and what it leaves behind must be the
 * old state, the new one, or something that the next one who locks the page mends. A test build
 * defines HF_STEPS and answers hf__step itself; in every other build a step is nothing. */
#ifndef HF_STORES_FILE_STEP_H
#define HF_STORES_FILE_STEP_H

#ifdef HF_STEPS
void hf__step(const char *name);
#define HF__STEP(name) hf__step(#name)
#else
#define HF__STEP(name) ((void)0)
#endif

#endif /* HF_STORES_FILE_STEP_H */
