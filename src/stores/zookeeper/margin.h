/* margin.h - how long a lease may rely on a session. Pure.
 *
 * The leader ends a session when it has not heard of it for the session's timeout. A follower
 * reports every half tick which sessions it has heard from, and one that dies in between never
 * does. The client says something in every session at least ZK_TOUCHES times in its timeout. So at
 * any moment the leader may have last heard of a session half a tick and one such interval ago; a
 * quarter of a tick more is for a leader that is late. What is left of the timeout then is sure. */
#ifndef HF_ZOOKEEPER_MARGIN_H
#define HF_ZOOKEEPER_MARGIN_H

#include <stdint.h>

#define ZK_TICK_DEFAULT_MS 2000 /* what ZooKeeper's sample configuration has */
#define ZK_TICK_MIN_MS     10
#define ZK_TICK_MAX_MS     60000
#define ZK_TOUCHES         12 /* in one session timeout */

/* The longest lease that a session can carry; 0: none at all. Never more than three quarters. */
uint32_t zk_lease_of_session(uint32_t session_ms, uint32_t tick_ms);
/* The shortest session that carries leases of ttl_ms. */
uint32_t zk_session_for_lease(uint32_t ttl_ms, uint32_t tick_ms);

#endif /* HF_ZOOKEEPER_MARGIN_H */
