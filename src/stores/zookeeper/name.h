/* name.h - a lock's name, or a record's key, as the name of a node: percent-encoded. Pure. */
#ifndef HF_ZOOKEEPER_NAME_H
#define HF_ZOOKEEPER_NAME_H

#include <holdfast.h>

enum { ZK_NAME_MAX = 3 * HF_NAME_MAX }; /* bytes of the longest */

/* False if it does not fit. */
bool zk_node_name(char *out, size_t size, const char *text);
/* The reverse. False: no text is written like that, or it does not fit. A text is written in one
 * way only, and another one might mean the same. */
bool zk_node_text(char *out, size_t size, const char *node);

#endif /* HF_ZOOKEEPER_NAME_H */
