/* watch.h - what a scrape asks the store: whether it answers, and about the locks of --watch.
 *
 * A thread asks, one lock after the other, when somebody scrapes and 5s have passed since it last
 * began. A scrape gives it a moment and then takes what is there: a store that does not answer
 * costs a scrape nothing, and what is not known is left out. */
#ifndef HF_SERVE_WATCH_H
#define HF_SERVE_WATCH_H

#include "serve/serve.h"

struct watch;

/* NULL: no memory, no thread. */
struct watch *watch_open(struct serve *serve, struct metrics *metrics);
/* From now on no question to the store begins. True: none is under way any more; false: one still
 * was at until_ns. */
bool watch_end(struct watch *watch, int64_t until_ns);
/* Waits for a question that is under way. */
void watch_close(struct watch *watch);

/* Prints the series of the watched locks. Waits for 20 ms at most. */
void watch_print(struct watch *watch, struct text *out);

#endif /* HF_SERVE_WATCH_H */
