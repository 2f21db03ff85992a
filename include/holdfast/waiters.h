/* holdfast/waiters.h - who waits for a lock, in order. */
#ifndef HOLDFAST_WAITERS_H
#define HOLDFAST_WAITERS_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One who waits. Strings live until the callback returns. */
struct hf_waiter {
    size_t size;       /* of the struct as the library knows it */
    const char *label; /* "" if not known */
    int64_t waited_ms; /* < 0: not known */
};
/* Return false to stop. */
typedef bool hf_waiter_fn(const struct hf_waiter *waiter, void *data);

/* hf_waiters - call fn for those who wait for the lock called name, the next one first; at most a
 * hundred. Must not call back into the store from fn. A snapshot, for people to look at.
 *
 * HF_OK           even if nobody waits
 * HF_UNSUPPORTED  the store does not know who they are; hf_inspect tells how many
 * HF_UNREACHABLE, HF_DENIED, HF_INVALID, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_waiters(struct hf_store *store, const char *name,
                                               hf_waiter_fn *fn, void *data, struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_WAITERS_H */
