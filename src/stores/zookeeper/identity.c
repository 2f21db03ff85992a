/* identity.c - who a ZooKeeper is: the node that its locks live below, by when it was made. A
 * second ensemble would have to make one in the same transaction number and millisecond. */
#include "base/base.h"
#include "stores/zookeeper/zookeeper.h"

#include <inttypes.h>
#include <stdio.h>

enum hf_status zk_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    const struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    const char *root = store->url.root[0] != '\0' ? store->url.root : "/";
    struct zk_request *get = zk_request_new();
    struct zk_session *session;
    enum hf_status status;
    int rc = ZK_NOMEM;

    if (get == NULL)
        return hf__nomem(err);
    status = zk_session_get(store, 0, NULL, &patience, &session, err);
    if (status != HF_OK) {
        zk_request_unref(get);
        return status;
    }
    rc = zk_send_get(session->handle, get, root, NULL, NULL);
    if (rc == ZOK)
        rc = zk_request_wait(get, &patience);
    if (rc == ZNONODE || (rc == ZOK && get->stat.ctime == 0))
        status = hf__fail_lock(err, HF_UNKNOWN, NULL, store->url.common.shown,
                               ": no lock has been taken here yet");
    else if (rc != ZOK) /* a reading that found no answer has changed nothing */
        status = zk_verdict(store, NULL, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
    else
        (void)snprintf(out, HF_IDENTITY_SIZE, "id:zookeeper:%" PRIx64 ":%" PRIx64,
                       (uint64_t)get->stat.czxid, (uint64_t)get->stat.ctime);
    zk_request_unref(get);
    zk_session_unref(session);
    return status == HF_OK ? hf__ok(err) : status;
}
