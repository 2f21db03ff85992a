/* acquisition.h - one call that takes a lock, in its parts: acquire.c does them in one go, begin.c
 * lets two threads share them. */
#ifndef HF_CLIENT_ACQUISITION_H
#define HF_CLIENT_ACQUISITION_H

#include "client/client.h"

/* One attempt after the other, each with fresh owners. */
struct hf__acquisition {
    struct hf_store *store;
    struct hf_lease *lease; /* what will come of it */
    struct hf_acquire_options options;
    char label[HF_LABEL_MAX + 1];
    struct hf_claim *claims; /* what is asked for: any of these */
    char (*owners)[HF_OWNER_LEN + 1];
    size_t count;
    size_t made; /* of the claims: the first at once, the others when they are needed */
    const char *const *names; /* of several: in the order of the claims from the first-th on, */
    size_t first;             /* and then those before it */
    size_t which;             /* of the claims: granted, or what the error is about */
    int64_t asked_ns;         /* when the present attempt began */
    struct hf__wait wait;     /* what passing troubles are waited out by */
    struct hf_begun *begun;   /* the store has been asked already; NULL: not yet */
};

/* Checks the arguments of a call for one lock, and begins the use of the store. */
enum hf_status hf__acquisition_enter(struct hf__acquisition *a, const char *name,
                                     const struct hf_acquire_options *options,
                                     struct hf_error *err);
/* Everything before the store is asked. The first claim has its name. */
enum hf_status hf__acquisition_prepare(struct hf__acquisition *a, struct hf_error *err);
/* Asks the store, and makes the lease one of those that are held. */
enum hf_status hf__acquisition_carry_out(struct hf__acquisition *a, struct hf_lease **out,
                                         struct hf_error *err);

#endif /* HF_CLIENT_ACQUISITION_H */
