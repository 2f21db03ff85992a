/* holdfast/several.h - several locks at once: all of them, or one of them.
 *
 * Nothing is ever counted. "At most three" is one of three locks, job#0 to job#2, and each of them
 * has an owner, a ttl, a token and a fence of its own: nothing leaks when a holder dies, and no
 * limit is exceeded when a server is away.
 *
 *     const char *const seats[] = {"row12/a", "row12/b", "row12/c"};
 *     const char *const both[] = {"account/7", "account/9"};
 *     struct hf_lease *seat, *leases[2];
 *     size_t which;
 *
 *     if (hf_acquire_any(store, seats, 3, &options, &seat, &which, &err) == HF_OK)
 *         reserve(seats[which], hf_lease_token(seat));
 *     if (hf_acquire_all(store, both, 2, &options, leases, &err) == HF_OK) {
 *         transfer(hf_lease_token(leases[0]), hf_lease_token(leases[1]));
 *         status = hf_release_all(leases, 2, &err);
 *     }
 */
#ifndef HOLDFAST_SEVERAL_H
#define HOLDFAST_SEVERAL_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HF_SEVERAL_MAX = 64 }; /* names of one call */

/* hf_acquire_any - take one of several locks.
 *
 * names: 1 to HF_SEVERAL_MAX names, none of them twice. Those that are free are tried first, in the
 * order of the names, or from a random one if options->spread is set, and from the first again
 * after the last. If none is free, and there is time to wait, the caller stands in the queue of
 * each of them, with an owner for each. The first grant wins, and the other queues are left; a
 * second grant that comes at the same moment is passed on at once, and nobody ever sees it.
 *
 * options, waiting, and what a wait outlives: as in hf_acquire. Waiting costs as much of the engine
 * as for one lock, in the stores that come with holdfast: one connection per server, whatever the
 * number of names; in a Redis Cluster, one for each name.
 *
 * *which: the index of the lock that was taken; else of the one that the error is about.
 *
 * HF_OK           *out holds names[*which], and ends with hf_release
 * HF_BUSY         others hold all of them, and did until the wait was over; the text says who has
 *                 names[*which]
 * HF_UNKNOWN      a reply never came: any of them may have been taken. What may be held was given
 *                 back as well as can be
 * HF_INVALID      no names, too many, one of them twice or malformed
 * HF_CANCELLED, HF_QUARANTINE, HF_UNREACHABLE, HF_DENIED, HF_UNSUPPORTED, HF_CORRUPT, HF_NOMEM   as
 *                 in hf_acquire: trouble with one of them ends the attempt for all */
HF_API HF_MUST_CHECK enum hf_status hf_acquire_any(struct hf_store *store, const char *const *names,
                                                   size_t count,
                                                   const struct hf_acquire_options *options,
                                                   struct hf_lease **out, size_t *which,
                                                   struct hf_error *err);

/* hf_acquire_all - take several locks, all or nothing.
 *
 * names: 1 to HF_SEVERAL_MAX names, none of them twice. They are taken one after the other in the
 * order of their names' bytes, whatever the order they are given in: two callers who want the same
 * locks cannot wait for each other. The wait is one for all. While later ones are waited for, the
 * earlier ones are renewed, including those of options->no_keeper and options->detached; if one is
 * lost meanwhile, the wait ends, and what was taken is given back, the last one first.
 *
 * options->wait_above: for somebody who holds another lock already. Names that are not above it, in
 * the order of their bytes, are tried and never waited for. NULL: all are waited for.
 *
 * leases: room for count of them; leases[i] is of names[i]. Each has its own token and deadline:
 * the earliest deadline is that of the whole (hf_all_remaining_ms), and the loss of one is the loss
 * of all. on_lost and on_renewed are called for each of them, and never before this returns.
 *
 * HF_OK           all are held
 * HF_LOST         one was lost while others were waited for; the text says which and why
 * HF_INVALID      no names, too many, one of them twice or malformed
 * and what hf_acquire answers for one of them, which the text names. Unless it is HF_OK nothing is
 * held, and all of leases are NULL. */
HF_API HF_MUST_CHECK enum hf_status hf_acquire_all(struct hf_store *store, const char *const *names,
                                                   size_t count,
                                                   const struct hf_acquire_options *options,
                                                   struct hf_lease **leases, struct hf_error *err);

/* hf_all_remaining_ms - hf_lease_remaining_ms of the lease that ends first. */
HF_API int64_t hf_all_remaining_ms(struct hf_lease *const *leases, size_t count);

/* hf_release_all - give several locks back, in the reverse order of their names' bytes, and free
 * the leases, whatever is returned; takes NULLs, and leaves NULLs behind.
 *
 * HF_OK if each of them was held to the end and is free now; HF_LOST if one was not, else the first
 * answer of hf_release that was not HF_OK. The error's text is about that one. */
HF_API HF_MUST_CHECK enum hf_status hf_release_all(struct hf_lease **leases, size_t count,
                                                   struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_SEVERAL_H */
