/* cut.h - leaving a server that does not answer, without leaving the session.
 *
 * The library stays with a silent server for two thirds of the session's timeout: too long for most
 * leases. It cannot be told to go; but when its connection ends it goes to the next host at once,
 * with its session. So the connection is ended under its hands. */
#ifndef HF_ZOOKEEPER_CUT_H
#define HF_ZOOKEEPER_CUT_H

#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#define ZK_ENDPOINT_MAX 160 /* as the library writes it */

/* "ADDRESS:PORT", without brackets, of the server that the handle is connected to, or tries to
 * connect to. */
bool zk_find_server(zhandle_t *handle, char out[ZK_ENDPOINT_MAX]);
/* Shuts the handle's connection down if nothing has come through it for that long although
 * something is awaited, or if it is not even made. The library does not tell its descriptor: every
 * connection of this process to the same server that is as silent is shut, another session's too.
 * False: there is none. */
bool zk_cut(zhandle_t *handle, int64_t silent_ms);

#endif /* HF_ZOOKEEPER_CUT_H */
