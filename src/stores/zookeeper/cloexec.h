/* cloexec.h - close-on-exec for the library's descriptors, which it does not set itself.
 *
 * The library tells nobody its descriptors, so they are found among the process's own: a socket by
 * the address it is connected to, the pipes of a handle by having come while it was made. */
#ifndef HF_ZOOKEEPER_CLOEXEC_H
#define HF_ZOOKEEPER_CLOEXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#define ZK_FDS_MAX 4096 /* descriptors above are passed over */

struct zk_fds {
    uint64_t bits[ZK_FDS_MAX / 64];
};

/* All that are open now. */
void zk_fds_note(struct zk_fds *out);
bool zk_fds_has(const struct zk_fds *fds, int fd);
/* Of the pipes that were not open before and have a non-blocking end. */
void zk_cloexec_pipes(const struct zk_fds *before);
/* Of the socket of a connected handle. */
void zk_cloexec_socket(zhandle_t *handle);

#endif /* HF_ZOOKEEPER_CLOEXEC_H */
