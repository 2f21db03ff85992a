/* store.c - the PostgreSQL store: its table of operations, opening and closing. */
#include "stores/postgres/postgres.h"
#include "base/base.h"
#include "stores/postgres/schema.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_ONE_IN 64 /* opens that look for the remains of dead waiters */
#define SERVER_MIN   120000

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err);
static enum hf_status store_open_readonly(const struct hf_host *host, const char *url,
                                          int64_t deadline_ns, struct hf_store_base **out,
                                          struct hf_error *err);
static void store_close(struct hf_store_base *base, bool forked);
static uint32_t store_max_ttl_ms(struct hf_store_base *base);

static const char *const schemes[] = {"postgres", "postgresql", NULL};

static const struct hf_store_ops ops = {
    .size = sizeof ops,
    .schemes = schemes,
    .features = HF_FEATURE_FAIR | HF_FEATURE_DURABLE_TOKENS | HF_FEATURE_DETACHED |
                HF_FEATURE_RENEW_TTL | HF_FEATURE_RECORDS | HF_FEATURE_BREAK,
    .open = store_open,
    .close = store_close,
    .acquire = pg_acquire,
    .acquire_any = pg_acquire_any,
    .renew = pg_renew,
    .release = pg_release,
    .list = pg_list,
    .renew_many = pg_renew_many,
    .open_readonly = store_open_readonly,
    .max_ttl_ms = store_max_ttl_ms,
    .end_quarantine = pg_end_quarantine,
    .quarantine = pg_quarantine,
    .identity = pg_identity,
    .forget = pg_forget,
    .waiters = pg_waiters,
    .last_break = pg_last_break,
    .record_put = pg_record_put,
    .record_get = pg_record_get,
    .record_list = pg_record_list,
    .revoke = pg_revoke,
    .audit = pg_audit,
};

const struct hf_store_plugin *hf_store_plugin(void)
{
    static const struct hf_store_plugin plugin = {.abi = HF_STORE_ABI, .ops = &ops};

    return &plugin;
}

/* Now and then, what dead waiters left behind is removed. Nothing depends on it. */
static void sweep(struct pg_store *store, const struct hf__patience *patience)
{
    static const struct pg_statement statement = {
        "SELECT holdfast.sweep(), pg_catalog.pg_backend_pid() AS pid", NULL, 0};
    struct pg_params none = {0};
    struct pg_call call = {
        .statement = &statement, .params = &none, .patience = *patience, .use = PG_USE_ACQUIRE};
    struct pg_answer answer;
    uint8_t dice;

    store->base.host->random(&dice, sizeof dice);
    if (dice % SWEEP_ONE_IN == 0 && pg_call(store, &call, &answer, NULL) == HF_OK)
        PQclear(answer.rows);
}

/* Meets the server, so that a wrong password is told now and the first acquire is one round trip.
 * One in quarantine is open all the same: renewals, releases and listings go on. */
static enum hf_status meet(struct pg_store *store, bool readonly,
                           const struct hf__patience *patience, struct hf_error *err)
{
    struct pg_conn *conn;
    char id[PG_ID_SIZE];
    enum hf_status status = pg_pool_take(&store->main, PG_USE_ACQUIRE, false, patience, &conn, err);
    bool there = false;
    int version;

    if (status != HF_OK)
        return status;
    version = PQserverVersion(conn->link);
    if (readonly)
        status = pg_schema_exists(conn, patience, store->url.shown, &there, err);
    pg_pool_give(&store->main, conn);
    if (version < SERVER_MIN)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->url.shown,
                             ": needs PostgreSQL %d or later", SERVER_MIN / 10000);
    if (readonly) {
        store->absent = !there;
        return status;
    }
    status = pg_incarnation_meet(store, patience, id, err);
    if (status == HF_OK)
        sweep(store, patience);
    return status == HF_QUARANTINE ? hf__ok(err) : status;
}

static enum hf_status open_store(const struct hf_host *host, const char *url, bool readonly,
                                 int64_t deadline_ns, struct hf_store_base **out,
                                 struct hf_error *err)
{
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct pg_store *store = calloc(1, sizeof *store);
    enum hf_status status;

    if (store == NULL)
        return hf__nomem(err);
    store->base.ops = &ops;
    store->base.host = host;
    /* Cannot fail: mutexes of the default kind need no resource. */
    pthread_mutex_init(&store->lock, NULL);
    pg_pool_init(&store->main, host, store->url.uri, store->url.shown);
    pg_pool_init(&store->listen, host, store->url.listen_uri, store->url.shown);
    status = pg_url_parse(url, &store->url, err);
    if (status == HF_OK)
        status = meet(store, readonly, &patience, err);
    if (status != HF_OK) {
        store_close(&store->base, false);
        return status;
    }
    *out = &store->base;
    if (!atomic_load(&store->main.at_risk))
        return hf__ok(err);
    return hf__fail_lock(err, HF_OK, NULL, store->url.shown,
                         ": the password was sent to another host without making sure that it is "
                         "the right one; add sslmode=verify-full");
}

static enum hf_status store_open(const struct hf_host *host, const char *url, int64_t deadline_ns,
                                 struct hf_store_base **out, struct hf_error *err)
{
    return open_store(host, url, false, deadline_ns, out, err);
}

static enum hf_status store_open_readonly(const struct hf_host *host, const char *url,
                                          int64_t deadline_ns, struct hf_store_base **out,
                                          struct hf_error *err)
{
    return open_store(host, url, true, deadline_ns, out, err);
}

static void store_close(struct hf_store_base *base, bool forked)
{
    struct pg_store *store = (struct pg_store *)base;

    pg_pool_release(&store->main, forked);
    pg_pool_release(&store->listen, forked);
    if (!forked)
        pthread_mutex_destroy(&store->lock);
    explicit_bzero(store->url.uri, sizeof store->url.uri);
    explicit_bzero(store->url.listen_uri, sizeof store->url.listen_uri);
    free(store);
}

static uint32_t store_max_ttl_ms(struct hf_store_base *base)
{
    return (uint32_t)((struct pg_store *)base)->url.max_ttl_ms;
}
