/* holdfast/hold.h - a lock and the place for its lease in one struct: for bindings of other
 * languages.
 *
 * Two things cost a language that calls C through a foreign function interface. Each argument does:
 * here are two at the most. And where a thread may be interrupted between any two of its steps (Ctrl-C in
 * Python, Thread#raise in Ruby), a lease that was returned but not yet written down is lost, and
 * one that was released but not yet crossed out is released twice. Here the lease is in its place
 * before the call returns, and is taken out of it in one atomic step:
 *
 *     struct hf_hold hold = {.size = sizeof hold, .name = "nightly"};
 *
 *     if (hf_hold_acquire(store, &hold) == HF_OK) {
 *         work(hold.token);
 *         if (hf_hold_release(&hold) != HF_OK)
 *             complain(hold.err.text);
 *     }
 *
 * A hold may be used again and again, for one lock after the other. */
#ifndef HOLDFAST_HOLD_H
#define HOLDFAST_HOLD_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_hold {
    size_t size; /* sizeof(struct hf_hold) */
    /* What is wanted, as in hf_acquire. These have to live until the acquire returns. */
    const char *name;
    const struct hf_acquire_options *options;
    /* What came of it. */
    struct hf_lease *lease; /* NULL: nothing is held */
    uint64_t token;         /* of the last lease that was here; 0: none was */
    enum hf_loss loss;      /* when it was released: why it had been lost, as far as was known */
    struct hf_error err;    /* of the last call that had something to do */
};

/* hf_hold_acquire - hf_acquire, for hold->name. Blocks and answers as that does, with the words in
 * hold->err; also HF_INVALID if there is a lease in hold, which stays there. */
HF_API HF_MUST_CHECK enum hf_status hf_hold_acquire(struct hf_store *store, struct hf_hold *hold);

/* hf_hold_acquire_any, hf_hold_acquire_all - hf_acquire_any and hf_acquire_all, for the names of
 * these holds, with the options of the first. any puts the lease into the one hold whose lock was
 * taken. The words are in the first one's err, whichever lock they are about; also HF_INVALID if
 * there is a lease in one of them. */
HF_API HF_MUST_CHECK enum hf_status hf_hold_acquire_any(struct hf_store *store,
                                                        struct hf_hold *const *holds, size_t count);
HF_API HF_MUST_CHECK enum hf_status hf_hold_acquire_all(struct hf_store *store,
                                                        struct hf_hold *const *holds, size_t count);

/* hf_hold_release - hf_release, for the lease in hold, if there is one: HF_OK if not.
 *
 * The lease is taken out in one atomic step: of several threads that do this at once one releases
 * it, the others get HF_OK and change nothing. No other call on the lease may be under way. */
HF_API HF_MUST_CHECK enum hf_status hf_hold_release(struct hf_hold *hold);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_HOLD_H */
