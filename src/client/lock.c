/* lock.c - a lock and the place for its lease in one struct. */
#include "client/client.h"

#include <holdfast/lock.h>
#include <holdfast/several.h>

/* Another thread may release at any moment: whoever takes the lease out has it. */
static void put_in(struct hf_lock *lock, struct hf_lease *lease)
{
    lock->token = hf_lease_token(lease);
    lock->loss = HF_LOSS_NONE;
    __atomic_store_n(&lock->lease, lease, __ATOMIC_RELEASE);
}

static enum hf_status check(const struct hf_lock *lock, struct hf_error *err)
{
    if (lock->size < sizeof *lock)
        return hf__fail(err, HF_INVALID, "lock.size must be sizeof(struct hf_lock)");
    if (__atomic_load_n(&lock->lease, __ATOMIC_ACQUIRE) != NULL)
        return hf__fail(err, HF_INVALID, "there is a lease in this lock already");
    return HF_OK;
}

enum hf_status hf_lock_acquire(struct hf_store *store, struct hf_lock *lock)
{
    struct hf_lease *lease;
    enum hf_status status = check(lock, &lock->err);

    if (status == HF_OK)
        status = hf_acquire(store, lock->name, lock->options, &lease, &lock->err);
    if (status == HF_OK)
        put_in(lock, lease);
    return status;
}

/* The names of the locks, if something can be put into each of them. */
static enum hf_status names_of(struct hf_lock *const *locks, size_t count,
                               const char *names[HF_SEVERAL_MAX])
{
    struct hf_error *err = &locks[0]->err;

    if (count > HF_SEVERAL_MAX)
        return hf__fail(err, HF_INVALID, "1 to %d locks can be taken at once", HF_SEVERAL_MAX);
    for (size_t i = 0; i < count; i++) {
        enum hf_status status = check(locks[i], err);

        if (status != HF_OK)
            return status;
        names[i] = locks[i]->name;
    }
    return HF_OK;
}

enum hf_status hf_lock_acquire_any(struct hf_store *store, struct hf_lock *const *locks,
                                   size_t count)
{
    const char *names[HF_SEVERAL_MAX];
    struct hf_lease *lease;
    enum hf_status status;
    size_t which;

    if (count == 0)
        return HF_INVALID;
    status = names_of(locks, count, names);
    if (status == HF_OK)
        status =
            hf_acquire_any(store, names, count, locks[0]->options, &lease, &which, &locks[0]->err);
    if (status == HF_OK)
        put_in(locks[which], lease);
    return status;
}

enum hf_status hf_lock_acquire_all(struct hf_store *store, struct hf_lock *const *locks,
                                   size_t count)
{
    const char *names[HF_SEVERAL_MAX];
    struct hf_lease *leases[HF_SEVERAL_MAX];
    enum hf_status status;

    if (count == 0)
        return HF_INVALID;
    status = names_of(locks, count, names);
    if (status == HF_OK)
        status = hf_acquire_all(store, names, count, locks[0]->options, leases, &locks[0]->err);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        put_in(locks[i], leases[i]);
    return status;
}

enum hf_status hf_lock_release(struct hf_lock *lock)
{
    struct hf_lease *lease = __atomic_exchange_n(&lock->lease, NULL, __ATOMIC_ACQ_REL);

    if (lease == NULL)
        return HF_OK;
    lock->loss = hf_lease_loss(lease);
    return hf_release(lease, &lock->err);
}
