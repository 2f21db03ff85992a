/* list.c - what is held and waited for. */
#include "stores/zookeeper/several.h"

#include <string.h>

#define TOGETHER 32 /* locks that are asked about at once */

/* For how long it has been the first, by the server's clock and ours: for display only. */
static int64_t age_ms(const struct zk_store *store, const struct Stat *stat,
                      const struct zk_said *said)
{
    int64_t age = store->base.host->wall_us() / 1000 - stat->ctime - said->waited_ms;

    return age > 0 ? age : 0;
}

/* Who holds it: the first child, with what it says. *said is the caller's, and outlives *info. */
static void describe(const struct zk_store *store, const struct zk_entry *first,
                     const struct Stat *stat, const char *text, struct zk_said *said,
                     struct hf_lock_info *info)
{
    info->held = true;
    info->foreign = first->foreign;
    info->label = said->label;
    if (!info->foreign)
        info->token = (uint64_t)stat->czxid;
    info->endless = stat->ephemeralOwner == 0;
    if (!info->foreign && zk_data_parse(text, said)) {
        info->ttl_ms = said->ttl_ms;
        info->renewed_ms = said->revoked ? 0 : stat->mtime; /* its last write was the break */
        info->age_ms = age_ms(store, stat, said);
        info->revocation = said->revoked ? &said->revocation : NULL;
    } else {
        hf__copy_printable(said->label, sizeof said->label, text);
    }
}

/* A listing under way. */
struct listing {
    struct zk_session *session;
    struct hf__patience patience;
    hf_list_fn *fn;
    void *data;
    bool more;                    /* what fn said */
    size_t shown;                 /* how often it was called */
    size_t hidden;                /* locks that we may not read */
    char denied[HF_NAME_MAX + 1]; /* the first of them */
};

/* What is found out about a lock, so far. */
struct inspection {
    char name[HF_NAME_MAX + 1];
    struct zk_request *children;
    struct zk_request *first; /* the first of them; NULL: there is none */
    struct zk_request *line;  /* a slot's common line; NULL: it is no slot */
    struct zk_queue queue;
};

/* A lock that we may not read is no reason to keep the others back. */
static void hide(struct listing *l, const struct inspection *found)
{
    if (l->hidden++ == 0)
        memcpy(l->denied, found->name, sizeof l->denied);
}

static int ask_first(struct listing *l, struct inspection *found)
{
    int rc = zk_request_wait(found->children, &l->patience);

    if (rc == ZOK)
        rc = zk_order_queue(l->session, found->name, &found->children->names, &l->patience,
                            &found->queue);
    if (rc == ZNOAUTH)
        hide(l, found);
    if (rc == ZNONODE || rc == ZNOAUTH) /* no container: nobody is there */
        rc = ZOK;
    if (rc != ZOK || found->queue.count == 0)
        return rc;
    found->first = zk_request_new();
    return found->first != NULL
               ? zk_ask_child(l->session, found->name, found->queue.at[0].name, found->first)
               : ZK_NOMEM;
}

/* Those who wait for any of the slots wait for this one, too. */
static int count_line(struct listing *l, const struct inspection *found, uint64_t *waiters)
{
    int rc = ZNONODE;

    if (found->line != NULL)
        rc = zk_request_wait(found->line, &l->patience);
    if (rc == ZOK)
        *waiters += found->line->names.count;
    return rc == ZNONODE || rc == ZNOAUTH ? ZOK : rc; /* nobody is there, or nobody to be seen */
}

static int ask_line(struct listing *l, struct inspection *found)
{
    char line_name[HF_NAME_MAX + 1];
    size_t number;

    if (!zk_line_name(found->name, line_name, &number))
        return ZOK;
    found->line = zk_request_new();
    return found->line != NULL ? zk_ask_queue(l->session, line_name, found->line) : ZK_NOMEM;
}

static int show(struct listing *l, const struct inspection *found)
{
    struct zk_store *store = l->session->store;
    struct hf_lock_info info = {
        .size = sizeof info, .name = found->name, .label = "", .remaining_ms = -1, .age_ms = -1};
    const struct zk_entry *first = found->queue.at;
    struct Stat stat = {0};
    char text[ZK_DATA_MAX];
    struct zk_said said;
    int rc = count_line(l, found, &info.waiters);

    if (rc == ZOK)
        rc =
            found->first != NULL ? zk_hear_child(found->first, &l->patience, text, &stat) : ZNONODE;
    if (rc != ZOK && rc != ZNOAUTH && rc != ZNONODE)
        return rc;
    if (rc != ZNONODE)
        info.waiters += found->queue.count - 1;
    if (rc == ZNONODE) {
        /* Nobody holds it, or released it just now: whoever is next shows the next time. */
    } else if (rc == ZNOAUTH) { /* somebody is there, but we may not read who */
        info.held = true;
        info.foreign = true;
    } else if (zk_holds_judge(store, found->name, first->name, &stat, &info.remaining_ms) !=
               ZK_OVER) {
        describe(store, first, &stat, text, &said, &info);
    }
    if (info.held || info.waiters > 0) {
        l->shown++;
        l->more = l->fn(&info, l->data);
    }
    return ZOK;
}

/* Looks at count locks at once, in two round trips. Returns a ZooKeeper code. */
static int inspect(struct listing *l, struct inspection *found, size_t count)
{
    int rc = ZOK;

    for (size_t i = 0; rc == ZOK && i < count; i++) {
        found[i].children = zk_request_new();
        rc = found[i].children != NULL ? zk_ask_queue(l->session, found[i].name, found[i].children)
                                       : ZK_NOMEM;
        if (rc == ZOK)
            rc = ask_line(l, &found[i]);
    }
    for (size_t i = 0; rc == ZOK && i < count; i++)
        rc = ask_first(l, &found[i]);
    for (size_t i = 0; rc == ZOK && l->more && i < count; i++)
        rc = show(l, &found[i]);
    for (size_t i = 0; i < count; i++) {
        zk_request_unref(found[i].children);
        zk_request_unref(found[i].first);
        zk_request_unref(found[i].line);
        zk_queue_release(&found[i].queue);
        found[i] = (struct inspection){0};
    }
    return rc;
}

static int inspect_one(struct listing *l, const char *name)
{
    struct inspection found = {0};

    (void)snprintf(found.name, sizeof found.name, "%s", name);
    return inspect(l, &found, 1);
}

static int inspect_all(struct listing *l, const char *prefix)
{
    struct zk_store *store = l->session->store;
    struct zk_request *request = zk_request_new();
    struct inspection found[TOGETHER] = {0};
    size_t count = 0;
    int rc = ZK_NOMEM;

    if (request == NULL)
        return rc;
    rc = zk_send_children(l->session->handle, request, store->url.root);
    if (rc == ZOK)
        rc = zk_request_wait(request, &l->patience);
    for (size_t i = 0; rc == ZOK && l->more && i < request->names.count; i++) {
        if (zk_node_text(found[count].name, sizeof found[count].name, request->names.at[i]) &&
            strncmp(found[count].name, prefix, strlen(prefix)) == 0)
            count++;
        if (count == TOGETHER || (count > 0 && i + 1 == request->names.count)) {
            rc = inspect(l, found, count);
            count = 0;
        }
    }
    zk_request_unref(request);
    return rc == ZNONODE ? ZOK : rc; /* no root yet: no locks */
}

static enum hf_status conclude(const struct listing *l, const char *name, int rc,
                               struct hf_error *err)
{
    const struct zk_store *store = l->session->store;

    if (rc == ZK_GIVEN_UP && l->shown > 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->url.common.shown,
                             ": the listing took too long and ended after %zu locks; ask for a "
                             "prefix",
                             l->shown);
    /* A reading that found no answer has changed nothing. */
    if (rc == ZOK && l->hidden > 0 && name == NULL)
        return hf__fail_lock(err, HF_DENIED, NULL, store->url.common.shown,
                             ": %zu locks are not for this user, \"%.60s\" for example; the others "
                             "are listed",
                             l->hidden, l->denied);
    if (rc == ZOK && l->hidden > 0)
        rc = ZNOAUTH;
    if (rc == ZOK)
        return hf__ok(err);
    return zk_verdict(store, name, rc == ZK_GIVEN_UP ? ZCONNECTIONLOSS : rc, err);
}

enum hf_status zk_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct zk_store *store = (struct zk_store *)base;
    struct listing l = {.patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                        .fn = fn,
                        .data = data,
                        .more = true};
    const char *name = query->exact ? query->name : NULL;
    struct zk_session *session;
    enum hf_status status = zk_session_get(store, 0, name, &l.patience, &session, err);
    int rc;

    if (status != HF_OK)
        return status;
    l.session = session;
    rc = zk_catch_up(session, &l.patience);
    if (rc == ZOK)
        rc = query->exact ? inspect_one(&l, query->name) : inspect_all(&l, query->name);
    status = conclude(&l, name, rc, err);
    zk_session_unref(session);
    return status;
}
