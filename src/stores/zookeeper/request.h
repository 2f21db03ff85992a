/* request.h - one request to the server, and its answer.
 *
 * The library answers in a thread of its own, and always: with the server's word, or with the loss
 * of the connection. A request is shared by the caller and that thread; whoever is last frees it,
 * so a caller may give up at its deadline. */
#ifndef HF_ZOOKEEPER_REQUEST_H
#define HF_ZOOKEEPER_REQUEST_H

#include "base/patience.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

/* Codes of our own, beside the library's. */
enum {
    ZK_GIVEN_UP = -1001, /* no answer before the deadline: it may still take effect */
    ZK_CANCELLED = -1002,
    ZK_NOMEM = -1003,
    ZK_TURNED_AWAY = -1005 /* the server ends every new connection */
};

enum { ZK_OPS_MAX = 3 }; /* of a multi */

struct zk_names {
    char **at;
    size_t count;
};

struct zk_request {
    atomic_int refs;
    atomic_bool done;
    int fd; /* eventfd */
    int rc;
    struct Stat stat;
    char *text; /* a path, or data with a NUL behind it; NULL: none */
    size_t text_len;
    zoo_op_result_t results[ZK_OPS_MAX]; /* of a multi */
    struct zk_names names;
};

struct zk_request *zk_request_new(void); /* NULL: no memory or descriptor */
void zk_request_unref(struct zk_request *request);
/* Waits for the answer and returns its code, or one of ours. */
int zk_request_wait(struct zk_request *request, const struct hf__patience *patience);

/* Each sends and returns ZOK, or a code, and then no answer comes. request may not be reused. */
int zk_send_create(zhandle_t *handle, struct zk_request *request, const char *path,
                   const char *data, const struct ACL_vector *acl, int mode);
/* version: that the node must have; -1: any. */
int zk_send_delete(zhandle_t *handle, struct zk_request *request, const char *path,
                   int32_t version);
int zk_send_set(zhandle_t *handle, struct zk_request *request, const char *path, const char *data,
                int32_t version);
/* watcher NULL: no watch. A node that does not exist gets none. */
int zk_send_get(zhandle_t *handle, struct zk_request *request, const char *path, watcher_fn watcher,
                void *context);
/* text becomes the entry of its ACL that lets anybody change something, "world:anyone:cdrwa" for
 * instance; or NULL. */
int zk_send_acl(zhandle_t *handle, struct zk_request *request, const char *path);
int zk_send_children(zhandle_t *handle, struct zk_request *request, const char *path);
int zk_send_sync(zhandle_t *handle, struct zk_request *request, const char *path);
/* All or nothing. What a set answers goes to request->stat if its operation says so; which one
 * failed is in request->results. */
int zk_send_multi(zhandle_t *handle, struct zk_request *request, const zoo_op_t *ops, int count);

#endif /* HF_ZOOKEEPER_REQUEST_H */
