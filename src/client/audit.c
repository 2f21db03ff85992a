/* audit.c - facts about a store: what the store says about itself, and what can be seen from here.
 * */
#include "client/client.h"

#include "base/fact.h"
#include "core/samples.h"

#include <holdfast/repair.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

enum {
    LIMIT_MS = 5000,
    ROUNDS_MIN = 5,  /* of questions, to see how long answers take */
    ROUNDS_MAX = 64, /* if there is time: */
    ROUNDS_MS = 120,
    AWAKE_ERROR_MS = 10 /* between two clocks that are read one after the other */
};

/* A lock that nobody takes, to ask about. */
#define NOBODYS_LOCK "holdfast-doctor-asks"

/* Whether CLOCK_BOOTTIME is the machine's, or that of a container. */
static void tell_namespace(struct hf__teller *teller)
{
    const struct hf__topic topic = {"client.clock_of_host", NULL, "/proc/self/timens_offsets"};
    FILE *file = fopen(topic.source, "re");
    char clock[16];
    long long s, ns;
    bool own = false;

    if (file == NULL && errno != ENOENT) {
        hf__tell_unknown(teller, topic, strerror(errno));
        return;
    }
    while (file != NULL && fscanf(file, "%15s %lld %lld", clock, &s, &ns) == 3)
        own = own || s != 0 || ns != 0;
    if (file != NULL)
        (void)fclose(file);
    hf__tell(teller, topic, "%s", own ? "no" : "yes");
}

/* CLOCK_MONOTONIC stands still while the machine sleeps. */
static void tell_sleep(struct hf__teller *teller)
{
    const struct hf__topic topic = {"client.suspended", "ms", "CLOCK_BOOTTIME - CLOCK_MONOTONIC"};
    struct timespec awake;
    int64_t asleep_ms;

    if (clock_gettime(CLOCK_MONOTONIC, &awake) != 0) {
        hf__tell_unknown(teller, topic, strerror(errno));
        return;
    }
    asleep_ms = (hf__now_ns() - awake.tv_sec * HF__NS_PER_S - awake.tv_nsec) / HF__NS_PER_MS;
    hf__tell(teller, topic, "%" PRId64, asleep_ms > AWAKE_ERROR_MS ? asleep_ms : 0);
}

static void tell_clock(struct hf__teller *teller)
{
    const struct hf__topic topic = {"client.clock_synced", NULL, "adjtimex"};
    struct timex how = {.modes = 0};
    int state = adjtimex(&how);

    if (state < 0)
        hf__tell_unknown(teller, topic, strerror(errno));
    else
        hf__tell(teller, topic, "%s", (how.status & STA_UNSYNC) != 0 ? "no" : "yes");
}

static bool ignore(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return false;
}

/* How long an answer takes: that of a question about a lock, which every store can be asked. */
static void tell_latency(struct hf__teller *teller, struct hf_store *store, int64_t deadline_ns)
{
    static const struct hf__topic p50 = {"store.latency_p50", "us", "status of a free lock"};
    static const struct hf__topic p99 = {"store.latency_p99", "us", "status of a free lock"};
    int64_t enough_ns = hf__now_ns() + ROUNDS_MS * HF__NS_PER_MS;
    struct hf_store_base *base = store->base;
    struct hf__samples samples = {.count = 0};
    struct hf_error err = {.code = HF_OK};
    int64_t now_ns = hf__now_ns();

    while (samples.count < ROUNDS_MAX && now_ns < deadline_ns &&
           (samples.count < ROUNDS_MIN || now_ns < enough_ns)) {
        struct hf_query query = {.name = NOBODYS_LOCK, .exact = true, .deadline_ns = deadline_ns};
        int64_t asked_ns = now_ns;

        if (base->ops->list(base, &query, ignore, NULL, &err) != HF_OK)
            break;
        now_ns = hf__now_ns();
        hf__samples_add(&samples, (now_ns - asked_ns) / 1000);
    }
    if (samples.count < ROUNDS_MIN) {
        hf__tell_unknown(teller, p50, err.text);
        hf__tell_unknown(teller, p99, err.text);
        return;
    }
    hf__tell(teller, p50, "%" PRId64, hf__samples_percentile(&samples, 50));
    hf__tell(teller, p99, "%" PRId64, hf__samples_percentile(&samples, 99));
}

static void tell_quarantine(struct hf__teller *teller, struct hf_store *store)
{
    const struct hf__topic topic = {"store.quarantine", "ms", "status"};
    struct hf_error why;
    enum hf_status status = hf_quarantine(store, &why);

    if (status == HF_OK || status == HF_QUARANTINE)
        hf__tell(teller, topic, "%" PRId64, status == HF_OK ? 0 : why.retry_after_ms);
    else
        hf__tell_unknown(teller, topic, why.text);
}

/* What is seen through an open store. */
static enum hf_status tell_of_use(struct hf__teller *teller, const char *url, int64_t deadline_ns,
                                  struct hf_error *err)
{
    const struct hf__topic refusal = {"store.refusal", NULL, "hf_open_readonly"};
    struct hf_store *store;
    enum hf_status status;

    if (hf__now_ns() >= deadline_ns) {
        hf__tell_unknown(teller, refusal, "there was no time left to try");
        return HF_OK;
    }
    status = hf_open_readonly(url, &store, err);
    hf__tell(teller, refusal, "%s", status != HF_OK ? err->text : "");
    if (status != HF_OK)
        return status;
    tell_quarantine(teller, store);
    tell_latency(teller, store, deadline_ns);
    hf_close(store);
    return HF_OK;
}

/* What a store tells goes on, and so does that it was enough. */
static bool pass_on(const struct hf_fact *fact, void *data)
{
    struct hf__teller *teller = data;

    if (!teller->stopped && !teller->fn(fact, teller->data))
        teller->stopped = true;
    return !teller->stopped;
}

enum hf_status hf_audit(const char *url, const struct hf_audit_options *options, hf_fact_fn *fn,
                        void *data, struct hf_error *err)
{
    const struct hf_audit_options defaults = {.size = sizeof defaults};
    const struct hf_audit_options *o = options != NULL ? options : &defaults;
    int64_t limit_ms = o->limit_ms > 0 ? o->limit_ms : LIMIT_MS;
    struct hf_audit_query query = {.scope = o->scope,
                                   .ttl_ms = o->ttl_ms > 0 ? o->ttl_ms : HF_TTL_DEFAULT_MS,
                                   .deadline_ns =
                                       hf__time_add(hf__now_ns(), hf__ms_to_ns(limit_ms))};
    struct hf__teller teller = {.fn = fn, .data = data};
    const struct hf_store_ops *ops;
    struct hf_error own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    url = hf__url_or_default(url);
    status = hf__registry_find(url, &ops, err);
    if (status != HF_OK)
        return status;
    (void)hf__ok(err);
    hf__tell(&teller, (struct hf__topic){"store.audit", NULL, "the store's table"}, "%s",
             HF__OPERATION(ops, audit) != NULL ? "yes" : "no");
    if (HF__OPERATION(ops, audit) != NULL && !teller.stopped)
        status = ops->audit(&hf__host, url, &query, pass_on, &teller, err);
    if (status != HF_OK)
        return status;
    if (query.scope == HF_AUDIT_ALL && !teller.stopped) {
        tell_namespace(&teller);
        tell_sleep(&teller);
        tell_clock(&teller);
        status = tell_of_use(&teller, url, query.deadline_ns, err);
        /* A store that told of itself was reached; why it does not open is a fact like others. */
        if (status != HF_OK && HF__OPERATION(ops, audit) == NULL)
            return status;
    }
    return hf__ok(err);
}
