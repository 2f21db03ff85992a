/* every.c - waiting in the queues of several locks, until we are first in one of them.
 *
 * All our children are of one session: if we die, they end together. */
#include "stores/zookeeper/several.h"

/* Makes sure that we stand in the queue of lock i, if the last reading was answered by rc. ZOK: we
 * are first there, and can prove it. ZK_WAIT_OVER: somebody is before us, and listener i is set to
 * that one. */
static int stand(struct zk_several *s, size_t i, int rc)
{
    struct zk_attempt *a = &s->at[i];
    size_t index;

    rc = zk_attempt_stand(a, a->in_queue ? rc : zk_enter(a), &index);
    while (rc == ZOK && index == 0 && a->sent_at_ns == 0)
        rc = zk_attempt_stand(a, zk_confirm(a), &index);
    if (rc != ZOK || index == 0)
        return rc;
    return zk_listen_to(s->store, a->claim->name, a->queue.at[index - 1].name, &s->listeners[i])
               ? ZK_WAIT_OVER
               : ZBADARGUMENTS;
}

int zk_every_wait(struct zk_several *s)
{
    int rc = ZOK;
    size_t gone;

    for (;;) {
        for (size_t i = 0; i < s->count; i++) {
            int found = stand(s, i, rc);

            s->which = i;
            if (found != ZK_WAIT_OVER)
                return found;
        }
        if (s->store->base.host->now_ns() >= s->claims[0].wait_until_ns)
            return ZK_WAIT_OVER;
        rc = zk_doze(&s->at[0], s->listeners, s->count, ZK_POLL_NS, &gone);
        for (size_t i = 0; i < s->count; i++)
            s->at[i].sent_at_ns = 0; /* what was proved before we slept */
        if (rc == ZOK)
            rc = zk_read_queues(s);
        if (rc != ZOK)
            return rc;
    }
}
