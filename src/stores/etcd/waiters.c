/* waiters.c - who waits, in order: the keys of the queue behind the first, by their revision. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdlib.h>

/* A queue as it is collected: the first few by their revision. */
struct crowd {
    struct ec_kv at[HF_WAITERS_MAX + 1];
    size_t count;
};

static void add(struct crowd *crowd, const struct ec_kv *kv)
{
    size_t at = crowd->count;

    while (at > 0 && crowd->at[at - 1].create_revision > kv->create_revision)
        at--;
    if (at > HF_WAITERS_MAX)
        return;
    if (crowd->count <= HF_WAITERS_MAX)
        crowd->count++;
    for (size_t i = crowd->count - 1; i > at; i--)
        crowd->at[i] = crowd->at[i - 1];
    crowd->at[at] = *kv;
}

static enum hf_status collect(struct ec_store *store, const struct hf_query *query,
                              struct crowd *crowd, struct hf_error *err)
{
    const struct ec_request request = {
        .store = store,
        .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
        .err = err};
    enum { PAGE = 1000, PAGES_MAX = 100 };
    enum hf_status status = HF_OK;
    struct ec_scan scan;
    struct ec_keys keys;

    ec_keys_make(&keys, store->url.prefix, query->name, "");
    ec_scan_init(&scan, &request, keys.own, keys.queue_len, PAGE);
    for (int page = 0; page < PAGES_MAX && scan.more && status == HF_OK; page++) {
        struct ec_answer answer;
        struct ec_kv kv;

        status = ec_scan_page(&scan, false, &answer);
        for (size_t i = 0; i < ec_answer_kv_count(answer.json); i++)
            if (ec_answer_kv(answer.json, i, &kv))
                add(crowd, &kv);
        ec_answer_release(&answer);
    }
    return status;
}

enum hf_status ec_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct ec_store *store = (struct ec_store *)base;
    int64_t now_us = base->host->wall_us();
    struct crowd *crowd = calloc(1, sizeof *crowd);
    bool more = true;
    enum hf_status status;

    if (crowd == NULL)
        return hf__nomem(err);
    status = collect(store, query, crowd, err);
    for (size_t i = 0; status == HF_OK && more && i < crowd->count; i++) {
        const struct ec_said *said = &crowd->at[i].said;
        struct hf_waiter waiter = {.size = sizeof waiter, .label = said->label, .waited_ms = -1};

        if (i == 0 && said->kind != EC_KIND_WAITING)
            continue; /* the holder */
        if (said->since_us > 0 && now_us >= said->since_us)
            waiter.waited_ms = (now_us - said->since_us) / 1000;
        more = fn(&waiter, data);
    }
    free(crowd);
    return status;
}
