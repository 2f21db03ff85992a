/* date.c - etcd's clock, which it shows only in the Date of its answers: whole seconds, of the
 * server that answered. */
#include "base/base.h"
#include "stores/etcd/etcd.h"

#define FRESH_NS (60 * HF__NS_PER_S) /* how long our clock stands in for the server's */

void ec_date_note(struct ec_store *store, const struct ec_answer *answer)
{
    /* Now, not when it was asked: so the count below is never ahead of the server. */
    int64_t now_ns = store->base.host->now_ns();

    if (answer->date_ms == 0)
        return;
    pthread_mutex_lock(&store->lock);
    store->date_ms = answer->date_ms;
    store->dated_ns = now_ns;
    pthread_mutex_unlock(&store->lock);
}

static bool count(struct ec_store *store, int64_t *out_ms)
{
    int64_t passed_ns;
    bool fresh;

    pthread_mutex_lock(&store->lock);
    passed_ns = store->base.host->now_ns() - store->dated_ns;
    fresh = store->dated_ns != 0 && passed_ns <= FRESH_NS;
    *out_ms = (store->date_ms + passed_ns / HF__NS_PER_MS) / 1000 * 1000;
    pthread_mutex_unlock(&store->lock);
    return fresh;
}

enum hf_status ec_date_missing(const struct ec_request *request)
{
    return ec_fail(request->lock, request->store->url.common.shown, HF_UNSUPPORTED,
                   "its answers have no Date, so its clock is not known; is there a proxy in "
                   "between?",
                   request->err);
}

enum hf_status ec_date_now(const struct ec_request *request, int64_t *out_ms)
{
    struct ec_store *store = request->store;
    struct ec_answer answer;
    enum hf_status status;

    if (count(store, out_ms))
        return HF_OK;
    status = ec_meet(store, request->patience.deadline_ns, &answer, request->err);
    if (status != HF_OK)
        return status;
    ec_answer_release(&answer);
    return count(store, out_ms) ? HF_OK : ec_date_missing(request);
}
