/* waiters.c - who waits, in order: the children behind the first, and what they say. */
#include "base/base.h"
#include "stores/zookeeper/zookeeper.h"

/* Whose turn it is to be told; false: nobody wants to hear more. *rc is a ZooKeeper code. */
static bool tell(struct zk_session *session, const struct hf_query *query,
                 const struct zk_entry *entry, hf_waiter_fn *fn, void *data, int *rc)
{
    const struct hf__patience patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1};
    struct hf_waiter waiter = {.size = sizeof waiter, .label = "", .waited_ms = -1};
    struct Stat stat = {0};
    struct zk_said said;
    char text[ZK_DATA_MAX];

    *rc = zk_read_child(session, query->name, entry->name, &patience, text, &stat);
    if (*rc == ZNONODE) { /* it has left just now */
        *rc = ZOK;
        return true;
    }
    if (*rc == ZNOAUTH)
        *rc = ZOK; /* somebody is there, but we may not read who */
    else if (*rc != ZOK)
        return false;
    if (stat.ctime > 0)
        waiter.waited_ms = session->store->base.host->wall_us() / 1000 - stat.ctime;
    if (waiter.waited_ms < 0)
        waiter.waited_ms = 0; /* its clock is ahead of ours */
    if (stat.ctime > 0 && !entry->foreign && zk_data_parse(text, &said))
        waiter.label = said.label;
    return fn(&waiter, data);
}

enum hf_status zk_waiters(struct hf_store_base *base, const struct hf_query *query,
                          hf_waiter_fn *fn, void *data, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    const struct hf__patience patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1};
    struct zk_queue queue = {0};
    struct zk_session *session;
    enum hf_status status = zk_session_get(store, 0, query->name, &patience, &session, err);
    int rc;

    if (status != HF_OK)
        return status;
    rc = zk_read_queue(session, query->name, true, &patience, &queue);
    for (size_t i = 1; rc == ZOK && i < queue.count && i <= HF_WAITERS_MAX; i++)
        if (!tell(session, query, &queue.at[i], fn, data, &rc))
            break;
    zk_queue_release(&queue);
    zk_session_unref(session);
    if (rc == ZOK || rc == ZNONODE)
        return hf__ok(err);
    return zk_verdict(store, query->name, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
}
