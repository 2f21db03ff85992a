/* notice.c - word to the holder of a hold that was ended at once: by whom, and why.
 *
 *   ROOT/%notices/NAME/TOKEN   what its child would say
 *
 * Whoever a notice is for removes it. The last few of a lock are kept for those who have not heard
 * yet, even if their holds were ended one right after the other. */
#include "stores/zookeeper/attempt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NOTICES_MAX 8            /* of a lock */
#define FIND_NS     HF__NS_PER_S /* for a notice: the news itself is there */
#define NOTICE_PATH (ZK_PATH_MAX + ZK_CHILD_MAX)
#define TOKEN_SIZE  20 /* as digits, the smaller the earlier */

/* Of all notices of a lock. False: it does not fit. */
static bool folder_path(const struct zk_store *store, const char *name, char out[NOTICE_PATH])
{
    int used = snprintf(out, NOTICE_PATH, "%s/%%notices/", store->url.root);

    return zk_node_name(out + used, ZK_NAME_MAX + 1, name);
}

static bool notice_path(const struct zk_store *store, const char *name, uint64_t token,
                        char out[NOTICE_PATH])
{
    size_t used;

    if (!folder_path(store, name, out))
        return false;
    used = strlen(out);
    (void)snprintf(out + used, NOTICE_PATH - used, "/%019" PRIu64, token);
    return true;
}

static int by_age(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void zk_notices_trim(struct zk_session *session, const char *name, size_t keep,
                     const struct hf__patience *patience)
{
    struct zk_request *children = zk_request_new();
    char path[NOTICE_PATH];
    size_t used;

    if (children != NULL && folder_path(session->store, name, path) &&
        zk_send_children(session->handle, children, path) == ZOK &&
        zk_request_wait(children, patience) == ZOK && children->names.count > keep) {
        used = strlen(path);
        qsort(children->names.at, children->names.count, sizeof *children->names.at, by_age);
        for (size_t i = 0; i < children->names.count - keep; i++) {
            (void)snprintf(path + used, sizeof path - used, "/%s", children->names.at[i]);
            (void)zk_delete(session, path, -1, patience);
        }
    }
    zk_request_unref(children);
}

void zk_notice_leave(struct zk_session *session, const char *name, uint64_t token, const char *data,
                     const struct hf__patience *patience)
{
    char path[NOTICE_PATH];
    char folder[NOTICE_PATH];
    int rc = ZNONODE;

    if (!notice_path(session->store, name, token, path) ||
        !folder_path(session->store, name, folder))
        return;
    for (int tries = 0; tries < 2 && rc == ZNONODE; tries++) {
        struct zk_request *made = zk_request_new();

        rc = made != NULL ? zk_send_create(session->handle, made, path, data,
                                           zk_acl(session->store), ZOO_PERSISTENT)
                          : ZK_NOMEM;
        if (rc == ZOK)
            rc = zk_request_wait(made, patience);
        zk_request_unref(made);
        if (rc == ZNONODE)
            (void)zk_make_container(session, folder, patience);
    }
    zk_notices_trim(session, name, NOTICES_MAX, patience);
}

void zk_notice_take(const struct zk_hold *hold, struct hf_revocation *out)
{
    zhandle_t *handle = hold->session->handle;
    struct hf__patience patience = hf__patience_for(FIND_NS, -1);
    struct zk_request *get = zk_request_new();
    struct zk_request *gone = zk_request_new();
    char path[NOTICE_PATH];
    struct zk_said said;

    *out = (struct hf_revocation){.by = ""};
    if (get != NULL && gone != NULL &&
        notice_path(hold->session->store, hold->name, hold->token, path) &&
        zk_send_get(handle, get, path, NULL, NULL) == ZOK &&
        zk_request_wait(get, &patience) == ZOK && get->text != NULL) {
        if (zk_data_parse(get->text, &said) && said.revoked)
            *out = said.revocation;
        (void)zk_send_delete(handle, gone, path, -1); /* not waited for */
    }
    zk_request_unref(get);
    zk_request_unref(gone);
}
