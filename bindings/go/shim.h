/* shim.h - what cgo cannot say by itself: lists of names, structs with strings in them, and what
 * C calls back in Go. */
#ifndef HOLDFAST_GO_SHIM_H
#define HOLDFAST_GO_SHIM_H

#include <holdfast/elect.h>
#include <holdfast/once.h>
#include <holdfast/record.h>
#include <holdfast/several.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What is wanted: one of count names, or all of them. */
struct want {
    size_t count;
    bool all, no_keeper, spread;
    uint32_t ttl_ms;
    int64_t wait_ms;
    int cancel_fd;
};

/* Go looks for pointers of its own behind every pointer, which costs as much as a mutex. */
struct taken {
    uintptr_t lease;
    uint64_t token;
    size_t which; /* of the names */
};

/* names: a line each, so that a line end in one is left over, and refused. taken: room for one, or
 * for all. */
static enum hf_status take(uintptr_t at, char *names, const char *label, struct want want,
                           struct taken *taken, struct hf_error *err)
{
    struct hf_store *store = (struct hf_store *)at;
    const char *list[HF_SEVERAL_MAX + 1];
    struct hf_lease *leases[HF_SEVERAL_MAX + 1];
    struct hf_acquire_options options = {.size = sizeof options,
                                         .ttl_ms = want.ttl_ms,
                                         .wait_ms = want.wait_ms,
                                         .label = label,
                                         .cancel_fd = want.cancel_fd,
                                         .no_keeper = want.no_keeper,
                                         .spread = want.spread};
    enum hf_status status;
    size_t i;

    for (i = 0; i < want.count && i <= HF_SEVERAL_MAX; i++) /* one too many: the library says so */
        list[i] = i + 1 < want.count ? strsep(&names, "\n") : names;
    taken->which = 0;
    status = want.count == 1 ? hf_acquire(store, names, &options, leases, err)
             : want.all      ? hf_acquire_all(store, list, i, &options, leases, err)
                             : hf_acquire_any(store, list, i, &options, leases, &taken->which, err);
    for (i = 0; status == HF_OK && i < (want.all ? want.count : 1); i++) {
        taken[i].lease = (uintptr_t)leases[i];
        taken[i].token = hf_lease_token(leases[i]);
    }
    return status;
}

static enum hf_status release(uintptr_t lease, enum hf_loss *loss, struct hf_error *err)
{
    return hf_release_why((struct hf_lease *)lease, loss, err);
}

/* Written in Go, which knows no const. */
extern bool holdfast_go_record(struct hf_record *found, void *to);
extern void holdfast_go_leader(struct hf_leader *found, void *to);

/* Go passes structs with strings in them by value only. */
static enum hf_status break_hold(struct hf_store *store, const char *name, uint64_t token,
                                 struct hf_break_options options, struct hf_error *err)
{
    return hf_break(store, name, token, &options, NULL, err);
}

static enum hf_status open_once(struct hf_store *store, const char *key,
                                struct hf_once_options options, struct hf_once **out,
                                struct hf_error *err)
{
    return hf_once_open(store, key, &options, out, err);
}

#endif /* HOLDFAST_GO_SHIM_H */
