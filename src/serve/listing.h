/* listing.h - listings of the store, shared by all who look.
 *
 * One that is under way serves all who ask, an answer is good for a second, and the next one starts
 * no sooner than ten times what the last one took. While nobody looks, nothing is listed. */
#ifndef HF_SERVE_LISTING_H
#define HF_SERVE_LISTING_H

#include "serve/serve.h"

#include "cli/say/show.h"

/* What a listing told. Lives until it is given back. */
struct listing_view {
    const struct cli_lock *locks; /* waited-for first, most waiters first, then the oldest */
    size_t count;
    int64_t as_of_ms; /* when it began, since 1970 */
    int64_t took_ms;
    bool full;      /* there were more, for which there was no room */
    unsigned users; /* listing.c's */
};

struct listing *listing_open(void);
void listing_close(struct listing *listing);

/* serve_listing - the present listing; waits for the one under way, or makes one. *out is given
 * back with serve_listing_done. HF_OK; otherwise what the store answered, and nothing is to be
 * given back. */
enum hf_status serve_listing(struct serve *serve, struct listing_view **out, struct hf_error *err);
void serve_listing_done(struct serve *serve, struct listing_view *view);

#endif /* HF_SERVE_LISTING_H */
