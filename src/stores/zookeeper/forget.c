/* forget.c - removing the node of a lock that nobody will use again. The server would do so itself,
 * some time after the last child is gone. */
#include "base/base.h"
#include "stores/zookeeper/zookeeper.h"

enum hf_status zk_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report)
{
    struct zk_store *store = (struct zk_store *)base;
    const struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    char path[ZK_PATH_MAX];
    struct zk_session *session;
    enum hf_status status = zk_session_get(store, 0, name, &patience, &session, report);
    int rc;

    if (status != HF_OK)
        return status;
    rc = zk_lock_path(store, name, path) ? zk_delete(session, path, -1, &patience) : ZNONODE;
    if (rc == ZOK || rc == ZNONODE)
        zk_notices_trim(session, name, 0, &patience);
    zk_session_unref(session);
    if (rc == ZNOTEMPTY)
        return hf__fail_lock(report, HF_BUSY, name, store->url.common.shown,
                             " is held or waited for");
    if (rc != ZOK && rc != ZNONODE)
        return zk_verdict(store, name, rc, report);
    return hf__fail(report, HF_OK, "the node %.150s", store->url.root);
}
