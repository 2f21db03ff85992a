/* probe.h - why there is no connection. */
#ifndef HF_ZOOKEEPER_PROBE_H
#define HF_ZOOKEEPER_PROBE_H

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

/* Does the server that the handle tries take connections and end them before a word was said? A
 * server that has too many of them from one address (maxClientCnxns) does that, and now and then
 * one that has no majority. May block for a second or so. */
bool zk_turned_away(zhandle_t *handle);

#endif /* HF_ZOOKEEPER_PROBE_H */
