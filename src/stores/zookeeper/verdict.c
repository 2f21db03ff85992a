/* verdict.c - what an answer means, in a status and a sentence. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

/* "lock "x" in store y" or "store y" */
static void subject(char *out, size_t size, const struct zk_store *store, const char *name)
{
    if (name != NULL)
        (void)snprintf(out, size, "lock \"%.60s\" in store %.80s", name, store->url.shown);
    else
        (void)snprintf(out, size, "store %.120s", store->url.shown);
}

enum hf_status zk_verdict(const struct zk_store *store, const char *name, int rc,
                          struct hf_error *err)
{
    char about[200];

    subject(about, sizeof about, store, name);
    switch (rc) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: no server answers; do the hosts run, and have they a majority?",
                        about);
    case ZK_TURNED_AWAY:
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: the server ends new connections at once; has it too many from here "
                        "(maxClientCnxns), or no majority?",
                        about);
    case ZK_GIVEN_UP:
        return hf__fail(err, HF_UNKNOWN, "%s: no answer came in time; it may have taken effect",
                        about);
    case ZK_CANCELLED:
        return hf__fail(err, HF_CANCELLED, "%s: cancelled", about);
    case ZNOAUTH:
    case ZINVALIDACL:
        return hf__fail(err, HF_DENIED, "%s: %s", about,
                        store->url.user[0] != '\0' ? "its nodes are not for this user and password"
                                                   : "its nodes want a user and a password");
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
        return hf__fail(err, HF_DENIED, "%s: the server refuses the way we authenticate", about);
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCLOSING:
        return hf__fail(err, HF_UNREACHABLE, "%s: the session has ended; try again", about);
    case ZUNIMPLEMENTED:
        return hf__fail(err, HF_UNSUPPORTED, "%s: the server is older than ZooKeeper 3.5", about);
    case ZK_NOMEM:
        return hf__nomem(err);
    case ZNOCHILDRENFOREPHEMERALS:
        return hf__fail(err, HF_CORRUPT, "%s: a node above it is ephemeral and can hold no locks",
                        about);
    default:
        return hf__fail(err, HF_UNREACHABLE, "%s: the server refuses: %s", about, zerror(rc));
    }
}

enum hf_status zk_busy(struct zk_session *session, const char *name, const struct zk_line *line,
                       const struct zk_patience *patience, struct hf_error *err)
{
    const char *shown = session->store->url.shown;
    char data[ZK_DATA_MAX] = "";
    struct zk_said said;

    if (line->count > 0 &&
        zk_read_child(session, name, line->at[0].name, patience, data, NULL) == ZOK &&
        zk_data_parse(data, &said) && said.label[0] != '\0')
        return hf__fail(err, HF_BUSY, "lock \"%.60s\" in store %.60s is held by %.100s", name,
                        shown, said.label);
    return hf__fail(err, HF_BUSY, "lock \"%.60s\" in store %.80s is held by another", name, shown);
}

enum hf_status zk_lost(const struct zk_store *store, const char *name, enum hf_loss loss,
                       struct hf_grant *grant, struct hf_error *err)
{
    if (grant != NULL)
        grant->loss = loss;
    return hf__fail(err, HF_LOST, "lock \"%.60s\" in store %.80s is not held any more: %s", name,
                    store->url.shown, hf_loss_text(loss));
}
