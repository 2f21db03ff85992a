/* begin.c - calls that one thread begins and another may end. */
#include "client/acquisition.h"

#include <holdfast/begin.h>
#include <stdlib.h>
#include <string.h>

struct hf_call {
    struct hf_store_base *base;
    struct hf_begun **begun;   /* what the store made of it; NULL: it was not asked */
    enum hf_status status;     /* of an acquire: HF_OK, or what was wrong at the beginning, */
    struct hf_error err;       /* and its words */
    struct hf_lease *lease;    /* of a release that could not begin */
    struct hf__release giving; /* of one that did */
    struct hf__acquisition taking;
    struct hf_claim claim;
    char owner[1][HF_OWNER_LEN + 1];
    char name[HF_NAME_MAX + 1];
};

static void ask_store(struct hf_call *call, struct hf_store *store, const struct hf_claim *claim,
                      struct hf_begun **begun)
{
    struct hf_begun *(*begin)(struct hf_store_base *, const struct hf_claim *) =
        HF__OPERATION(store->base->ops, begin);

    call->base = store->base;
    if (begin != NULL && (*begun = begin(store->base, claim)) != NULL)
        call->begun = begun;
}

struct hf_call *hf_begin_acquire(struct hf_store *store, const char *name,
                                 const struct hf_acquire_options *options)
{
    struct hf_call *call = calloc(1, sizeof *call);
    struct hf__acquisition *a;

    if (call == NULL)
        return NULL;
    a = &call->taking;
    *a = (struct hf__acquisition){
        .store = store, .claims = &call->claim, .owners = call->owner, .count = 1};
    call->status = hf__acquisition_enter(a, name, options, &call->err);
    if (call->status != HF_OK)
        return call;
    (void)stpcpy(call->name, name); /* a checked one */
    call->claim.name = call->name;
    call->status = hf__acquisition_prepare(a, &call->err);
    if (call->status != HF_OK)
        hf__store_end(store);
    else
        ask_store(call, store, &call->claim, &a->begun);
    return call;
}

struct hf_call *hf_begin_release(struct hf_lease *lease)
{
    struct hf_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    if (lease == NULL || hf__forked(&lease->mark) ||
        !hf__release_begin(&call->giving, lease, false))
        call->lease = lease;
    else
        ask_store(call, lease->store, &call->giving.claim, &call->giving.begun);
    return call;
}

bool hf_call_answered(struct hf_call *call, int64_t for_us)
{
    return call->begun != NULL &&
           call->base->ops->answered(call->base, *call->begun,
                                     hf__now_ns() + for_us * (HF__NS_PER_MS / 1000));
}

static enum hf_status end_of(struct hf_call *call, enum hf_status status)
{
    explicit_bzero(call, sizeof *call); /* the owner */
    free(call);
    return status;
}

enum hf_status hf_end_acquire(struct hf_call *call, struct hf_lease **out, struct hf_error *err)
{
    struct hf_store *store = call->taking.store;
    enum hf_status status = call->status;

    *out = NULL;
    if (err == NULL)
        err = &call->err;
    else
        *err = call->err;
    if (status == HF_OK) {
        status = hf__acquisition_carry_out(&call->taking, out, err);
        hf__store_end(store);
    }
    return end_of(call, status);
}

enum hf_status hf_end_release(struct hf_call *call, struct hf_error *err)
{
    if (call->giving.lease == NULL)
        return end_of(call, hf_release(call->lease, err));
    return end_of(call, hf__release_end(&call->giving, err));
}
