/* tls.h - TLS over a non-blocking socket, by OpenSSL. SIGPIPE is never raised. */
#ifndef HF_STORES_REDIS_WIRE_TLS_H
#define HF_STORES_REDIS_WIRE_TLS_H

#include "stores/redis/url.h"
#include <sys/types.h>

struct rd_tls_config; /* certificates and rules; shared by the connections of a store */
struct rd_tls;        /* one connection */

/* HF_OK, HF_INVALID (a file that cannot be read or is no certificate), HF_NOMEM. */
enum hf_status rd_tls_config_open(const struct rd_url *url, struct rd_tls_config **out,
                                  struct hf_error *err);
void rd_tls_config_close(struct rd_tls_config *config); /* takes NULL */

/* Begins to talk over fd, as a client that wants to talk to host. NULL: out of memory. */
struct rd_tls *rd_tls_open(const struct rd_tls_config *config, int fd, const char *host);
/* Shakes hands as far as it can without waiting. False: under way, step again once *wants (POLLIN
 * or POLLOUT) comes. True: it is over: HF_OK, or with the reason in *why HF_DENIED (certificate not
 * accepted) or HF_UNREACHABLE. */
bool rd_tls_step(struct rd_tls *tls, short *wants, enum hf_status *status, char *why,
                 size_t why_size);
/* Takes NULL; leaves the descriptor open. silent: says no farewell, because another process shares
 * the connection. */
void rd_tls_close(struct rd_tls *tls, bool silent);

/* As read(2) and write(2). -1 with errno EAGAIN: try again once *wants (POLLIN or POLLOUT) comes.
 */
ssize_t rd_tls_read(struct rd_tls *tls, char *buf, size_t len, short *wants);
ssize_t rd_tls_write(struct rd_tls *tls, const char *buf, size_t len, short *wants);

#endif /* HF_STORES_REDIS_WIRE_TLS_H */
