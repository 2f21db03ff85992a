/* list.c - what is held and waited for. */
#include "stores/zookeeper/zookeeper.h"

#include <string.h>

/* Since it was its turn, by the server's clock and ours: to be looked at, and for nothing else. */
static int64_t age_ms(const struct zk_store *store, const struct Stat *stat,
                      const struct zk_said *said)
{
    int64_t age = store->base.host->wall_us() / 1000 - stat->ctime - said->waited_ms;

    return age > 0 ? age : 0;
}

/* Who holds it: the first child, with what it says. label is the caller's, and outlives *info. */
static void describe(const struct zk_store *store, const struct zk_entry *first,
                     const struct Stat *stat, const char *text, char label[HF_LABEL_MAX + 1],
                     struct hf_lock_info *info)
{
    struct zk_said said;

    info->held = true;
    info->foreign = first->foreign;
    info->label = label;
    if (!info->foreign)
        info->token = (uint64_t)stat->czxid;
    if (!info->foreign && zk_data_parse(text, &said)) {
        info->age_ms = age_ms(store, stat, &said);
        text = said.label;
    }
    hf__copy_printable(label, HF_LABEL_MAX + 1, text);
}

/* One lock. Returns a ZooKeeper code; *more is what fn said. */
static int show(struct zk_session *session, const char *name, const struct zk_patience *patience,
                hf_list_fn *fn, void *data, bool *more)
{
    struct hf_lock_info info = {
        .size = sizeof info, .name = name, .label = "", .remaining_ms = -1, .age_ms = -1};
    struct Stat stat = {0};
    struct zk_line line;
    char text[ZK_DATA_MAX];
    char label[HF_LABEL_MAX + 1];
    int rc = zk_read_line(session, name, false, patience, &line);

    if (rc != ZOK || line.count == 0)
        goto out;
    rc = zk_read_child(session, name, line.at[0].name, patience, text, &stat);
    if (rc == ZNONODE) { /* released just now; whoever is next shows at the next look */
        rc = ZOK;
        goto out;
    }
    if (rc != ZOK)
        goto out;
    info.waiters = line.count - 1;
    if (zk_holds_judge(session->store, name, line.at[0].name, &stat, &info.remaining_ms) != ZK_OVER)
        describe(session->store, &line.at[0], &stat, text, label, &info);
    if (info.held || info.waiters > 0)
        *more = fn(&info, data);
out:
    zk_line_release(&line);
    return rc;
}

/* The name of the lock that a node is for. False: it is for none, because we write names in one way
 * only, and another one may mean the same lock. */
static bool name_of(const struct zk_store *store, const char *node, char name[ZK_NAME_MAX + 1])
{
    char path[ZK_PATH_MAX];

    return hf__url_copy(name, ZK_NAME_MAX + 1, node, strlen(node)) && hf__name_valid(name) &&
           zk_lock_path(store, name, path) && strcmp(strrchr(path, '/') + 1, node) == 0;
}

static int show_all(struct zk_session *session, const char *prefix,
                    const struct zk_patience *patience, hf_list_fn *fn, void *data)
{
    struct zk_request *request = zk_request_new();
    bool more = true;
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_children(session->handle, request, session->store->url.root);
    if (rc == ZOK)
        rc = zk_request_wait(request, patience);
    for (size_t i = 0; rc == ZOK && more && i < request->names.count; i++) {
        char name[ZK_NAME_MAX + 1];

        if (name_of(session->store, request->names.at[i], name) &&
            strncmp(name, prefix, strlen(prefix)) == 0)
            rc = show(session, name, patience, fn, data, &more);
    }
    zk_request_unref(request);
    return rc == ZNONODE ? ZOK : rc; /* no root yet: no locks */
}

enum hf_status zk_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct zk_patience patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1};
    const char *name = query->exact ? query->name : NULL;
    struct zk_session *session;
    enum hf_status status = zk_session_get(store, 0, name, &patience, &session, err);
    bool more = true;
    int rc;

    if (status != HF_OK)
        return status;
    rc = query->exact ? show(session, query->name, &patience, fn, data, &more)
                      : show_all(session, query->name, &patience, fn, data);
    zk_session_unref(session);
    if (rc == ZOK)
        return hf__ok(err);
    /* A reading that found no answer has changed nothing. */
    return zk_verdict(store, name, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
}
