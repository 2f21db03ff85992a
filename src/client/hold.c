/* hold.c - a lock and the place for its lease in one struct. */
#include "client/client.h"

#include <holdfast/hold.h>
#include <holdfast/several.h>

/* Another thread may release at any moment: whoever takes the lease out has it. */
static void put_in(struct hf_hold *hold, struct hf_lease *lease)
{
    hold->token = hf_lease_token(lease);
    hold->loss = HF_LOSS_NONE;
    __atomic_store_n(&hold->lease, lease, __ATOMIC_RELEASE);
}

static enum hf_status check(const struct hf_hold *hold, struct hf_error *err)
{
    if (hold->size < sizeof *hold)
        return hf__fail(err, HF_INVALID, "hold.size must be sizeof(struct hf_hold)");
    if (__atomic_load_n(&hold->lease, __ATOMIC_ACQUIRE) != NULL)
        return hf__fail(err, HF_INVALID, "this hold has a lease already");
    return HF_OK;
}

enum hf_status hf_hold_acquire(struct hf_store *store, struct hf_hold *hold)
{
    struct hf_lease *lease;
    enum hf_status status = check(hold, &hold->err);

    if (status == HF_OK)
        status = hf_acquire(store, hold->name, hold->options, &lease, &hold->err);
    if (status == HF_OK)
        put_in(hold, lease);
    return status;
}

/* The names of the holds, if something can be put into each of them. */
static enum hf_status names_of(struct hf_hold *const *holds, size_t count,
                               const char *names[HF_SEVERAL_MAX])
{
    struct hf_error *err = &holds[0]->err;

    if (count > HF_SEVERAL_MAX)
        return hf__fail(err, HF_INVALID, "1 to %d locks can be taken at once", HF_SEVERAL_MAX);
    for (size_t i = 0; i < count; i++) {
        enum hf_status status = check(holds[i], err);

        if (status != HF_OK)
            return status;
        names[i] = holds[i]->name;
    }
    return HF_OK;
}

enum hf_status hf_hold_acquire_any(struct hf_store *store, struct hf_hold *const *holds,
                                   size_t count)
{
    const char *names[HF_SEVERAL_MAX];
    struct hf_lease *lease;
    enum hf_status status;
    size_t which;

    if (count == 0)
        return HF_INVALID;
    status = names_of(holds, count, names);
    if (status == HF_OK)
        status =
            hf_acquire_any(store, names, count, holds[0]->options, &lease, &which, &holds[0]->err);
    if (status == HF_OK)
        put_in(holds[which], lease);
    return status;
}

enum hf_status hf_hold_acquire_all(struct hf_store *store, struct hf_hold *const *holds,
                                   size_t count)
{
    const char *names[HF_SEVERAL_MAX];
    struct hf_lease *leases[HF_SEVERAL_MAX];
    enum hf_status status;

    if (count == 0)
        return HF_INVALID;
    status = names_of(holds, count, names);
    if (status == HF_OK)
        status = hf_acquire_all(store, names, count, holds[0]->options, leases, &holds[0]->err);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        put_in(holds[i], leases[i]);
    return status;
}

enum hf_status hf_hold_release(struct hf_hold *hold)
{
    struct hf_lease *lease = __atomic_exchange_n(&hold->lease, NULL, __ATOMIC_ACQ_REL);

    if (lease == NULL)
        return HF_OK;
    hold->loss = hf_lease_loss(lease);
    return hf_release(lease, &hold->err);
}
