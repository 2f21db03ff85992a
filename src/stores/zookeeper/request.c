/* request.c - requests and their answers. */
#include "stores/zookeeper/zookeeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CANCEL_GRACE_NS (250 * HF__NS_PER_MS) /* as a rule an answer comes within this */

struct zk_request *zk_request_new(void)
{
    struct zk_request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return NULL;
    atomic_init(&request->refs, 1);
    request->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (request->fd < 0) {
        free(request);
        return NULL;
    }
    return request;
}

void zk_request_unref(struct zk_request *request)
{
    if (request == NULL || atomic_fetch_sub(&request->refs, 1) != 1)
        return;
    (void)close(request->fd);
    free(request->text);
    for (size_t i = 0; i < request->names.count; i++)
        free(request->names.at[i]);
    free(request->names.at);
    free(request);
}

int zk_request_wait(struct zk_request *request, const struct hf__patience *patience)
{
    struct hf__patience grace =
        hf__patience_until(patience, hf__time_add(hf__now_ns(), CANCEL_GRACE_NS));
    enum hf__waited waited = HF__WAITED_READY;

    grace.cancel_fd = -1;
    if (!atomic_load(&request->done))
        waited = hf__patience_wait(&grace, request->fd, POLLIN);
    if (waited == HF__WAITED_TIMEOUT)
        waited = hf__patience_wait(patience, request->fd, POLLIN);
    if (atomic_load(&request->done))
        return request->rc;
    return waited == HF__WAITED_CANCELLED ? ZK_CANCELLED : ZK_GIVEN_UP;
}

/* Completions run in the library's thread: they copy and wake, and do nothing else. */
static void finish(struct zk_request *request, int rc, const struct Stat *stat)
{
    request->rc = rc;
    if (stat != NULL)
        request->stat = *stat;
    atomic_store(&request->done, true);
    (void)eventfd_write(request->fd, 1);
    zk_request_unref(request);
}

static void keep_text(struct zk_request *request, int *rc, const char *text, size_t len)
{
    request->text = malloc(len + 1);
    if (request->text == NULL) {
        *rc = ZK_NOMEM;
        return;
    }
    memcpy(request->text, text, len);
    request->text[len] = '\0';
    request->text_len = len;
}

static void on_string_stat(int rc, const char *text, const struct Stat *stat, const void *data)
{
    struct zk_request *request = (struct zk_request *)data;

    if (rc == ZOK && text != NULL)
        keep_text(request, &rc, text, strlen(text));
    finish(request, rc, rc == ZOK ? stat : NULL);
}

static void on_string(int rc, const char *text, const void *data)
{
    on_string_stat(rc, text, NULL, data);
}

static void on_void(int rc, const void *data)
{
    finish((struct zk_request *)data, rc, NULL);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    finish((struct zk_request *)data, rc, rc == ZOK ? stat : NULL);
}

static void on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct zk_request *request = (struct zk_request *)data;

    if (rc == ZOK && value != NULL && len >= 0)
        keep_text(request, &rc, value, (size_t)len);
    finish(request, rc, rc == ZOK ? stat : NULL);
}

static void on_strings(int rc, const struct String_vector *strings, const void *data)
{
    struct zk_request *request = (struct zk_request *)data;
    size_t count = rc == ZOK && strings != NULL && strings->count > 0 ? (size_t)strings->count : 0;

    if (count > 0 && (request->names.at = calloc(count, sizeof *request->names.at)) == NULL)
        rc = ZK_NOMEM;
    for (size_t i = 0; rc == ZOK && i < count; i++) {
        request->names.at[i] = strdup(strings->data[i]);
        if (request->names.at[i] == NULL)
            rc = ZK_NOMEM;
        else
            request->names.count++;
    }
    finish(request, rc, NULL);
}

static void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct zk_request *request = (struct zk_request *)data;

    for (int i = 0; rc == ZOK && acl != NULL && i < acl->count; i++) {
        const struct ACL *entry = &acl->data[i];
        char text[sizeof "world:anyone:cdrwa"];

        if (strcmp(entry->id.scheme, "world") != 0 || (entry->perms & ~ZOO_PERM_READ) == 0)
            continue;
        (void)snprintf(text, sizeof text, "world:anyone:%s%s%s%s%s",
                       (entry->perms & ZOO_PERM_CREATE) != 0 ? "c" : "",
                       (entry->perms & ZOO_PERM_DELETE) != 0 ? "d" : "",
                       (entry->perms & ZOO_PERM_READ) != 0 ? "r" : "",
                       (entry->perms & ZOO_PERM_WRITE) != 0 ? "w" : "",
                       (entry->perms & ZOO_PERM_ADMIN) != 0 ? "a" : "");
        if (request->text == NULL)
            keep_text(request, &rc, text, strlen(text));
    }
    finish(request, rc, rc == ZOK ? stat : NULL);
}

/* The completion has a reference once the library took the request. */
static int sent(struct zk_request *request, int rc)
{
    if (rc != ZOK)
        (void)atomic_fetch_sub(&request->refs, 1);
    return rc;
}

int zk_send_create(zhandle_t *handle, struct zk_request *request, const char *path,
                   const char *data, const struct ACL_vector *acl, int mode)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_acreate2(handle, path, data, (int)strlen(data), acl, mode,
                                      on_string_stat, request));
}

int zk_send_delete(zhandle_t *handle, struct zk_request *request, const char *path, int32_t version)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_adelete(handle, path, version, on_void, request));
}

int zk_send_set(zhandle_t *handle, struct zk_request *request, const char *path, const char *data,
                int32_t version)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request,
                zoo_aset(handle, path, data, (int)strlen(data), version, on_stat, request));
}

int zk_send_get(zhandle_t *handle, struct zk_request *request, const char *path, watcher_fn watcher,
                void *context)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_awget(handle, path, watcher, context, on_data, request));
}

int zk_send_acl(zhandle_t *handle, struct zk_request *request, const char *path)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_aget_acl(handle, path, on_acl, request));
}

int zk_send_children(zhandle_t *handle, struct zk_request *request, const char *path)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_aget_children(handle, path, 0, on_strings, request));
}

int zk_send_sync(zhandle_t *handle, struct zk_request *request, const char *path)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_async(handle, path, on_string, request));
}

int zk_send_multi(zhandle_t *handle, struct zk_request *request, const zoo_op_t *ops, int count)
{
    (void)atomic_fetch_add(&request->refs, 1);
    return sent(request, zoo_amulti(handle, count, ops, request->results, on_void, request));
}
