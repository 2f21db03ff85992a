/* slots.h - locks that are numbers of one resource: NAME#0, NAME#1, and so on. */
#ifndef HF_CLI_SLOTS_H
#define HF_CLI_SLOTS_H

#include "cli/say/show.h"

/* Locks of one resource, one after the other in a list that is sorted by cli_slots_compare. The
 * number of slots is written down nowhere: the highest one that is seen tells. */
struct cli_slots {
    const char *name; /* not ended by a NUL */
    int len;          /* its length */
    size_t count;     /* locks in the list */
    unsigned slots;   /* the highest number, plus 1 */
    unsigned held;
    uint64_t waiters; /* each may stand in all queues: of the longest one */
};

/* "NAME#7" is slot 7 of NAME, whose length is *len. False if the name is not a slot. */
bool cli_slot_parse(const char *name, int *len, unsigned *number);
/* The order of names, but slots by their numbers. */
int cli_slots_compare(const char *a, const char *b);
/* The slots at the beginning of a list; count is 0 if the first is none. */
struct cli_slots cli_slots_find(const struct cli_lock *locks, size_t count);
/* "2 of 4 held, 3 waiting". */
enum { CLI_SLOTS_TEXT_SIZE = 80 };
void cli_slots_text(const struct cli_slots *slots, char out[CLI_SLOTS_TEXT_SIZE]);

#endif /* HF_CLI_SLOTS_H */
