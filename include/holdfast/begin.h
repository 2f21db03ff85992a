/* holdfast/begin.h - calls that one thread begins and another may end: for event loops.
 *
 * hf_acquire and hf_release wait for the store, which the thread of an event loop must not. But a
 * nearby server answers in less time than it takes to wake another thread. So that thread begins
 * the call, looks for the answer for a moment, and ends the call itself if it has come; if not, it
 * leaves the end to a thread that may wait:
 *
 *     struct hf_call *call = hf_begin_acquire(store, "nightly", &options);
 *
 *     if (call != NULL && hf_call_answered(call, 100))
 *         status = hf_end_acquire(call, &lease, &err);
 *     else
 *         ... another thread does the same, and waits meanwhile
 *
 * A call that was begun has to be ended: once, by the process that began it, before hf_close. */
#ifndef HOLDFAST_BEGIN_H
#define HOLDFAST_BEGIN_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_call;

/* hf_begin_acquire - begin what hf_acquire does. Never waits: the request is sent if that can be
 * done at once, else the end sends it. name and options are copied; cancel_fd has to stay open
 * until the end, which also tells what is wrong with the arguments. NULL: out of memory. */
HF_API HF_MUST_CHECK struct hf_call *hf_begin_acquire(struct hf_store *store, const char *name,
                                                      const struct hf_acquire_options *options);
/* hf_begin_release - likewise. The lease must not be used any more, unless this returns NULL. */
HF_API HF_MUST_CHECK struct hf_call *hf_begin_release(struct hf_lease *lease);

/* hf_call_answered - look for the answer, for at most that many microseconds. True: it is there,
 * and the end does not wait for anything. False may come sooner: nothing was sent, or looking has
 * not paid off lately. */
HF_API bool hf_call_answered(struct hf_call *call, int64_t for_us);

/* The ends: they block and answer as hf_acquire and hf_release do, and free the call. */
HF_API HF_MUST_CHECK enum hf_status hf_end_acquire(struct hf_call *call, struct hf_lease **out,
                                                   struct hf_error *err);
HF_API HF_MUST_CHECK enum hf_status hf_end_release(struct hf_call *call, struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_BEGIN_H */
