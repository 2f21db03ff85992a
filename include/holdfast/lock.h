/* holdfast/lock.h - a lock and the place for its lease in one struct: for bindings to other
 * languages.
 *
 * Two things cost a language that calls C through a foreign function interface. One is each
 * argument: here are two at the most. The other is that a thread may be interrupted between any two
 * of its steps (by Ctrl-C in Python, Thread#raise in Ruby): a lease that was returned but not yet
 * written down is then lost, and one that was released but not yet crossed out is released twice.
 * Here the lease is in its place before the call returns, and one atomic step takes it out again:
 *
 *     struct hf_lock lock = {.size = sizeof lock, .name = "nightly"};
 *
 *     if (hf_lock_acquire(store, &lock) == HF_OK) {
 *         work(lock.token);
 *         if (hf_lock_release(&lock) != HF_OK)
 *             complain(lock.err.text);
 *     }
 *
 * The struct may be used again and again, under one name or another. */
#ifndef HOLDFAST_LOCK_H
#define HOLDFAST_LOCK_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_lock {
    size_t size; /* sizeof(struct hf_lock) */
    /* What is wanted, as in hf_acquire. These have to live until the acquire returns. */
    const char *name;
    const struct hf_acquire_options *options;
    /* What came of it. */
    struct hf_lease *lease; /* NULL: nothing is held */
    uint64_t token;         /* of the last lease that was here; 0: none was */
    enum hf_loss loss;      /* when it was released: why it had been lost, as far as was known */
    struct hf_error err;    /* of the last call that had something to do */
};

/* hf_lock_acquire - hf_acquire, for lock->name. Blocks and answers as that does, with the text in
 * lock->err; also HF_INVALID if there is a lease in *lock, which stays there. */
HF_API HF_MUST_CHECK enum hf_status hf_lock_acquire(struct hf_store *store, struct hf_lock *lock);

/* hf_lock_acquire_any, hf_lock_acquire_all - hf_acquire_any and hf_acquire_all, for the names of
 * these locks, with the options of the first. any puts the lease into the one that was taken. The
 * text of an error is in the first one's err, whichever lock it is about; also HF_INVALID if there
 * is a lease in one of them. */
HF_API HF_MUST_CHECK enum hf_status hf_lock_acquire_any(struct hf_store *store,
                                                        struct hf_lock *const *locks, size_t count);
HF_API HF_MUST_CHECK enum hf_status hf_lock_acquire_all(struct hf_store *store,
                                                        struct hf_lock *const *locks, size_t count);

/* hf_lock_release - hf_release, for the lease in *lock, if there is one: HF_OK if not.
 *
 * The lease is taken out in one atomic step: of several threads that do this at once one releases
 * it, the others get HF_OK and change nothing. No other call on the lease may be under way. */
HF_API HF_MUST_CHECK enum hf_status hf_lock_release(struct hf_lock *lock);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_LOCK_H */
