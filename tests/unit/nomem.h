/* nomem.h - the N-th allocation fails: what the tests of that share.
 *
 * The linker puts the functions of nomem.c before the system's (see the Makefile), in the library
 * and in the test alike. What may be short counts: memory, threads, descriptors of the keeper. */
#ifndef HF_TESTS_NOMEM_H
#define HF_TESTS_NOMEM_H

#include "../support/check.h"
#include <holdfast.h>

/* From now on the n-th allocation fails, and only that; or none. */
void fail_nth(int n);
void fail_none(void);
/* Whether the one that was last set to fail was reached. */
bool has_failed(void);

/* The folder of the store, and its URL; another for every N, where it matters that the store is
 * new. */
extern char dir[256];
extern char url[300];
void new_store(void);

/* Every N until no allocation is left to fail: what the scenario does may be refused for want of
 * memory, and for nothing else. fresh: in a new store each time. */
void for_all_n(bool fresh, bool (*scenario)(void));

/* HF_NOMEM only if an allocation failed, and success whenever none did. */
bool fair(enum hf_status status, const struct hf_error *err);

#endif /* HF_TESTS_NOMEM_H */
