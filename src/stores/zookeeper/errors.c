/* errors.c - what an answer means, in a status and a sentence. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

/* What a code of the library, or of ours, is to a person. */
static const struct {
    int rc;
    enum hf_status status;
    const char *sentence;
} sentences[] = {
    {ZCONNECTIONLOSS, HF_UNREACHABLE,
     "no server answers; are the hosts up, and is there a quorum?"},
    {ZOPERATIONTIMEOUT, HF_UNREACHABLE,
     "no server answers; are the hosts up, and is there a quorum?"},
    {ZK_TURNED_AWAY, HF_UNREACHABLE,
     "the server closes new connections at once; does it have too many from here "
     "(maxClientCnxns), or no quorum?"},
    {ZK_GIVEN_UP, HF_UNKNOWN, "no answer came in time; it may have taken effect"},
    {ZK_CANCELLED, HF_CANCELLED, "cancelled"},
    {ZAUTHFAILED, HF_DENIED, "the server refuses the way we authenticate"},
    {ZSESSIONCLOSEDREQUIRESASLAUTH, HF_DENIED, "the server refuses the way we authenticate"},
    {ZSESSIONEXPIRED, HF_UNREACHABLE, "the session has ended; try again"},
    {ZINVALIDSTATE, HF_UNREACHABLE, "the session has ended; try again"},
    {ZCLOSING, HF_UNREACHABLE, "the session has ended; try again"},
    {ZUNIMPLEMENTED, HF_UNSUPPORTED, "the server is older than ZooKeeper 3.5"},
    {ZNOCHILDRENFOREPHEMERALS, HF_CORRUPT, "a node above it is ephemeral and can hold no locks"},
};

enum hf_status zk_verdict(const struct zk_store *store, const char *name, int rc,
                          struct hf_error *err)
{
    const char *shown = store->url.common.shown;

    if (rc == ZK_NOMEM)
        return hf__nomem(err);
    if (rc == ZNOAUTH || rc == ZINVALIDACL)
        return hf__fail_lock(err, HF_DENIED, name, shown, ": %s",
                             store->url.common.user[0] != '\0'
                                 ? "its nodes are not for this user and password"
                                 : "its nodes need a user and a password");
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].rc == rc)
            return hf__fail_lock(err, sentences[i].status, name, shown, ": %s",
                                 sentences[i].sentence);
    return hf__fail_lock(err, HF_UNREACHABLE, name, shown, ": the server refuses: %s", zerror(rc));
}

enum hf_status zk_busy(struct zk_session *session, const char *name, const struct zk_queue *queue,
                       const struct hf__patience *patience, struct hf_error *err)
{
    const char *shown = session->store->url.common.shown;
    char data[ZK_DATA_MAX] = "";
    struct zk_said said;

    if (queue->count > 0 &&
        zk_read_child(session, name, queue->at[0].name, patience, data, NULL) == ZOK &&
        zk_data_parse(data, &said) && said.label[0] != '\0')
        return hf__fail_lock(err, HF_BUSY, name, shown, " is held by %.100s%s%.40s", said.label,
                             said.revoked ? ", broken by " : "", said.revocation.by);
    return hf__fail_lock(err, HF_BUSY, name, shown, " is held by another");
}

enum hf_status zk_broken(const struct zk_store *store, const char *name,
                         const struct hf_revocation *revocation, struct hf_grant *grant,
                         struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = HF_LOSS_BROKEN;
    if (grant != NULL && grant->revocation != NULL)
        *grant->revocation = *revocation;
    return hf__fail_broken(err, name, store->url.common.shown, revocation);
}

enum hf_status zk_lost(const struct zk_store *store, const char *name, enum hf_loss loss,
                       struct hf_grant *grant, struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail_lock(err, HF_LOST, name, store->url.common.shown, " is not held any more: %s",
                         hf_loss_text(loss));
}
