/* slots.h - what is asked of every store about several locks, by processes of their own:
 * tests/tools/tool_slots.c. */
#ifndef HF_TESTS_SLOTS_H
#define HF_TESTS_SLOTS_H

#include <holdfast/several.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { SLOTS = 4 };

extern const char *const slot_names[SLOTS];
/* Gives the slots names of this process's own. */
void slots_name(void);

unsigned dice(unsigned *seed, unsigned below);

/* Each answers 0 if all is well, and prints what is not. */

/* Every slot can be taken again, and then nothing is held and nobody waits. */
bool slots_clean(const char *url);
int slots_order(const char *url);
int slots_killed(const char *url, int64_t limit_ms);
int slots_second(const char *url, int64_t limit_ms);
int slots_all(const char *url, int rounds);

#endif /* HF_TESTS_SLOTS_H */
