/* margin.c - sessions and leases. */
#include "stores/zookeeper/margin.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Half a tick, and a quarter of one more. */
static uint32_t unheard_ms(uint32_t tick_ms)
{
    return tick_ms / 2 + tick_ms / 4;
}

uint32_t zk_lease_of_session(uint32_t session_ms, uint32_t tick_ms)
{
    uint32_t margin_ms =
        larger((session_ms + 3) / 4, unheard_ms(tick_ms) + session_ms / ZK_TOUCHES + 1);

    return session_ms > margin_ms ? session_ms - margin_ms : 0;
}

uint32_t zk_session_for_lease(uint32_t ttl_ms, uint32_t tick_ms)
{
    uint64_t heard_ms = ((uint64_t)ttl_ms + unheard_ms(tick_ms)) * ZK_TOUCHES / (ZK_TOUCHES - 1);
    uint32_t session_ms = larger((ttl_ms + 2) / 3 * 4, (uint32_t)heard_ms);

    while (zk_lease_of_session(session_ms, tick_ms) < ttl_ms)
        session_ms++; /* what was rounded off */
    return session_ms;
}
