/* line.c - waiting for one of the slots NAME#0, NAME#1 and so on, in one common line.
 *
 * A client at the head of the line takes the first slot that is free, in one transaction with
 * leaving the line, and watches those who hold them until one is. The only child in a slot's queue
 * is that of a client that takes it, or that was overtaken on the way to it by one that did not
 * come through the line. So one that dies in the line, which is noticed when its session is over,
 * blocks no slot: those behind it, as many as there are slots, look at them every second, whoever
 * is before them.
 *
 * A client that waits for a particular slot passes through the line first, if there is one: it
 * waits for those who came before it, and then stands in the slot's own queue. */
#include "stores/zookeeper/several.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINE_MARK "\x01"         /* no lock's name has it */
#define LOOK_NS   (HF__NS_PER_S) /* how often those near the head look at the slots */

bool zk_line_name(const char *name, char out[HF_NAME_MAX + 1], size_t *number)
{
    const char *mark = strrchr(name, '#');
    uint64_t value;

    if (mark == NULL || mark == name || !hf__parse_u64(mark + 1, &value) ||
        value >= HF_SEVERAL_MAX || (mark[1] == '0' && mark[2] != '\0'))
        return false;
    *number = (size_t)value;
    return snprintf(out, HF_NAME_MAX + 1, LINE_MARK "%.*s", (int)(mark - name), name) <=
           HF_NAME_MAX;
}

bool zk_line_of_all(const struct hf_claim *claims, size_t count, char out[HF_NAME_MAX + 1])
{
    char other[HF_NAME_MAX + 1] = "";
    size_t number;

    /* No name is there twice, so numbers below count are all of them. */
    for (size_t i = 0; i < count; i++)
        if (!zk_line_name(claims[i].name, i == 0 ? out : other, &number) || number >= count ||
            (i > 0 && strcmp(out, other) != 0))
            return false;
    return true;
}

/* The head watches who holds the slots, everybody else the one in front. *count: how many
 * listeners are set; 0: look again. */
static bool set_listeners(struct zk_several *s, size_t index, size_t *count)
{
    struct zk_attempt *place = s->place;

    *count = 1;
    if (index > 0)
        return zk_listen_to(s->store, s->line_name, place->queue.at[index - 1].name,
                            &s->listeners[0]);
    for (*count = 0; *count < s->count; ++*count) {
        const struct zk_attempt *a = &s->at[*count];

        if (a->queue.count == 0) {
            *count = 0;
            return true;
        }
        if (!zk_listen_to(s->store, a->claim->name, a->queue.at[0].name, &s->listeners[*count]))
            return false;
    }
    return true;
}

/* Until something may have changed; *gone is the slot whose holder has left it, or count. */
static int sleep_in_line(struct zk_several *s, size_t index, size_t *gone)
{
    int64_t period_ns = index > 0 && index < s->count ? LOOK_NS : ZK_POLL_NS;
    size_t count;
    int rc;

    *gone = s->count;
    if (!set_listeners(s, index, &count))
        return ZBADARGUMENTS;
    if (count == 0)
        return ZOK;
    rc = zk_doze(s->place, s->listeners, count, period_ns, gone);
    if (index > 0 || *gone >= count)
        *gone = s->count;
    return rc;
}

/* Whether nobody is in the slot's queue. */
static bool is_free(struct zk_attempt *a)
{
    bool free;

    zk_queue_release(&a->queue);
    free = zk_read_queue(a->session, a->claim->name, false, &a->patience, &a->queue) == ZOK &&
           a->queue.count == 0;
    zk_queue_release(&a->queue);
    return free;
}

/* Near enough to the head: one that is free. hint: it just became so, as far as we know; count:
 * none. */
static int try_slots(struct zk_several *s, size_t hint)
{
    int rc = ZK_WAIT_OVER;

    if (hint < s->count && is_free(&s->at[hint]))
        rc = zk_try(s, hint);
    if (rc != ZK_WAIT_OVER)
        return rc;
    rc = zk_read_queues(s);
    return rc == ZOK ? zk_try_free(s) : rc;
}

/* We left the line, and were overtaken by somebody who did not come that way: waits in every slot's
 * queue, so that nobody else comes before us. */
static int wait_outside(struct zk_several *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct zk_attempt *a = &s->at[i];

        if (!a->in_queue && a->made_at_ns != 0)
            zk_attempt_draw_owner(a);
        a->claim = &s->claims[i];
        a->patience = s->place->patience;
        a->sent_at_ns = 0;
    }
    return zk_every_wait(s);
}

int zk_line_wait(struct zk_several *s)
{
    struct zk_attempt *place = s->place;
    int rc = zk_enter(place);
    size_t hint = s->count;
    size_t index;

    for (;;) {
        rc = zk_attempt_stand(place, rc, &index);
        if (rc != ZOK)
            return rc;
        /* What was free before we came may have been meant for others: it is looked at anew. */
        rc = index < s->count ? try_slots(s, hint) : ZK_WAIT_OVER;
        if (rc == ZK_OVERTAKEN)
            return wait_outside(s);
        if (rc != ZK_WAIT_OVER)
            return rc;
        rc = sleep_in_line(s, index, &hint);
        if (rc == ZOK && hint == s->count)
            rc = zk_read_line(s);
        if (rc != ZOK && !zk_connection_lost(rc))
            return rc;
    }
}

/* Stays in the line until nobody is before us, or the slot is free all the same: those before us
 * may be dead. */
static int stay_in_line(struct zk_attempt *place, struct zk_attempt *a,
                        struct zk_listener *listener)
{
    int rc = zk_enter(place);

    for (;;) {
        size_t gone;
        size_t index;

        rc = zk_attempt_stand(place, rc, &index);
        if (rc != ZOK || index == 0 || is_free(a))
            return rc;
        if (!zk_listen_to(place->store, place->claim->name, place->queue.at[index - 1].name,
                          listener))
            return ZBADARGUMENTS;
        rc = zk_doze(place, listener, 1, LOOK_NS, &gone);
        if (rc != ZOK)
            return rc;
        zk_queue_release(&place->queue);
        rc = zk_read_queue(place->session, place->claim->name, false, &place->patience,
                           &place->queue);
    }
}

int zk_line_pass(struct zk_attempt *a)
{
    char line_name[HF_NAME_MAX + 1];
    struct hf_claim line = *a->claim;
    struct zk_attempt place = *a;
    struct zk_listener listener;
    size_t number;
    int rc;

    if (a->claim->wait_until_ns == 0 || !zk_line_name(a->claim->name, line_name, &number))
        return ZOK;
    line.name = line_name;
    place.claim = &line;
    rc = zk_read_queue(a->session, line_name, false, &a->patience, &place.queue);
    if (rc != ZOK || place.queue.count == 0 || is_free(a)) {
        zk_queue_release(&place.queue);
        return zk_connection_lost(rc) ? ZOK : rc; /* whoever enters the queue sees to that */
    }
    listener.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener.fd < 0)
        return ZK_NOMEM;
    zk_attempt_draw_owner(&place);
    rc = stay_in_line(&place, a, &listener);
    (void)zk_attempt_leave(&place);
    zk_queue_release(&place.queue);
    (void)close(listener.fd);
    return rc;
}
