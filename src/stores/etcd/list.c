/* list.c - what is held, by whom, for how long, and who waits. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

#define PAGE       1000 /* keys per request, at the most */
#define LEASES_MAX 1024 /* leases that are asked for their time left */
#define PAGES_MAX  100000

/* What is left of a lease, once asked. */
struct known_lease {
    int64_t id;
    struct ec_life life;
};

/* A listing under way. The keys of a lock come in a row. */
struct listing {
    struct ec_store *store;
    struct ec_request request;
    struct ec_scan scan;
    hf_list_fn *fn;
    void *data;
    bool stopped;
    char name[HF_NAME_MAX + 1]; /* the lock whose keys come now, or "" */
    struct ec_kv head;
    uint64_t keys;
    struct known_lease *leases;
    size_t lease_count;
    int64_t ask_until_ns; /* leases are not asked for any more: locks come first */
    uint64_t shown;
};

/* Time left of a hold: that of its lease, which is longer as a rule, and at most its ttl. When the
 * lease was kept alive last is when the hold was renewed, to the second. */
static int64_t remaining_ms(struct listing *l, const struct ec_kv *kv, int64_t *renewed_ms)
{
    struct known_lease *lease = NULL;
    int64_t left_ms;

    for (size_t i = 0; i < l->lease_count && lease == NULL; i++)
        if (l->leases[i].id == kv->lease)
            lease = &l->leases[i];
    if (lease == NULL) {
        if (l->lease_count == LEASES_MAX || kv->lease == 0 ||
            l->store->base.host->now_ns() >= l->ask_until_ns)
            return -1;
        lease = &l->leases[l->lease_count];
        lease->id = kv->lease;
        if (ec_lease_left(&l->request, kv->lease, &lease->life) != HF_OK)
            return -1;
        l->lease_count++;
    }
    left_ms = lease->life.left_ms;
    *renewed_ms =
        l->store->base.host->wall_us() / 1000 - (lease->life.granted_ms - lease->life.left_ms);
    if (kv->said.kind != 0 && left_ms > (int64_t)kv->said.ttl_ms)
        left_ms = kv->said.ttl_ms;
    return left_ms;
}

/* Shows the lock whose keys were collected. */
static void show(struct listing *l)
{
    bool waits = l->head.said.kind == EC_KIND_WAITING;
    bool foreign = l->head.said.kind == 0;
    int64_t now_us = l->store->base.host->wall_us();
    struct hf_lock_info info = {
        .size = sizeof info,
        .name = l->name,
        .label = waits ? "" : l->head.said.label,
        .token = waits || foreign ? 0 : l->head.create_revision,
        .remaining_ms = -1,
        .age_ms = -1,
        .waiters = waits ? l->keys : l->keys - 1,
        .held = !waits,
        .detached = l->head.said.kind == EC_KIND_DETACHED,
        .foreign = foreign,
        .revocation = l->head.said.revoked ? &l->head.said.revocation : NULL,
    };

    if (l->name[0] == '\0')
        return;
    if (!waits)
        info.remaining_ms = remaining_ms(l, &l->head, &info.renewed_ms);
    if (!waits && !foreign)
        info.ttl_ms = l->head.said.ttl_ms;
    info.endless = !waits && l->head.lease == 0;
    if (!waits && l->head.said.since_us > 0)
        info.age_ms = now_us > l->head.said.since_us ? (now_us - l->head.said.since_us) / 1000 : 0;
    l->shown++;
    if (l->keys > 0 && !l->fn(&info, l->data))
        l->stopped = true;
    l->name[0] = '\0';
}

static void take_key(struct listing *l, const struct ec_kv *kv)
{
    char name[HF_NAME_MAX + 1];

    if (!ec_key_name(kv, l->store->url.prefix, name))
        return;
    if (strcmp(name, l->name) != 0) {
        show(l);
        if (l->stopped)
            return;
        memcpy(l->name, name, sizeof name);
        l->keys = 0;
    }
    if (l->keys++ == 0 || kv->create_revision < l->head.create_revision)
        l->head = *kv;
}

/* One page. */
static enum hf_status list_page(struct listing *l)
{
    struct ec_answer answer;
    enum hf_status status = ec_scan_page(&l->scan, false, &answer);
    size_t count = ec_answer_kv_count(answer.json);
    struct ec_kv kv;

    for (size_t i = 0; i < count && !l->stopped; i++)
        if (ec_answer_kv(answer.json, i, &kv))
            take_key(l, &kv);
    ec_answer_release(&answer);
    return status;
}

/* What the keys of the locks begin with. */
static void begin(struct listing *l, const struct hf_query *query, struct hf_error *err)
{
    struct ec_request request = l->request;
    struct ec_keys keys;

    request.err = err;
    ec_keys_make(&keys, l->store->url.prefix, query->name, "");
    ec_scan_init(&l->scan, &request, keys.own, query->exact ? keys.queue_len : keys.queue_len - 1,
                 PAGE);
    /* Records come before every lock, and may be many and large: passed over. */
    if (query->name[0] == '\0') {
        l->scan.start_len = strlen(l->store->url.prefix);
        l->scan.start[l->scan.start_len++] = EC_NAME_END + 1;
    }
}

enum hf_status ec_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct listing l = {
        .store = (struct ec_store *)base,
        .request = {.store = (struct ec_store *)base,
                    .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1}},
        .fn = fn,
        .data = data};
    enum hf_status status = HF_OK;

    l.ask_until_ns = base->host->now_ns();
    l.ask_until_ns += (query->deadline_ns - l.ask_until_ns) / 4;
    l.leases = calloc(LEASES_MAX, sizeof *l.leases);
    if (l.leases == NULL)
        return hf__nomem(err);
    begin(&l, query, err);
    for (int page = 0; page < PAGES_MAX && l.scan.more && status == HF_OK && !l.stopped; page++)
        status = list_page(&l);
    if (status == HF_OK && !l.stopped)
        show(&l);
    free(l.leases);
    if (status == HF_UNREACHABLE && l.shown > 0)
        return hf__fail_lock(err, status, NULL, l.store->url.common.shown,
                             ": the listing took too long and ended after %llu locks; ask for a "
                             "prefix",
                             (unsigned long long)l.shown);
    return status == HF_OK ? hf__ok(err) : status;
}
