/* figures.c - what the relay tells --events and --metrics: how much there is to do, and what was
 * done. */
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <stdlib.h>

/* The columns of hf__outbox_put_depth. */
enum { MESSAGES, OLDEST, DEAD, PARKED };

struct depth {
    bool known;
    int64_t messages;
    int64_t oldest_ms;
    int64_t dead;
    int64_t parked;
};

static bool read_depth(const struct hf__db_text *values, void *data)
{
    struct depth *depth = data;

    depth->known = true;
    depth->messages = strtoll(values[MESSAGES].data, NULL, 10);
    depth->oldest_ms =
        values[OLDEST].data != NULL ? (int64_t)(strtod(values[OLDEST].data, NULL) * 1000) : 0;
    depth->dead = strtoll(values[DEAD].data, NULL, 10);
    depth->parked = strtoll(values[PARKED].data, NULL, 10);
    return true;
}

/* If the database cannot be asked, the next statement will find out. */
static void ask_depth(struct outbox_relay *relay, struct depth *depth)
{
    struct outbox_answer answer = {.row = read_depth, .data = depth};
    struct hf_error err;

    if (relay->db.link == NULL)
        return;
    hf__outbox_put_depth(outbox_db_say(&relay->db), &relay->db.names);
    if (outbox_db_do(&relay->db, &answer, &err) != HF_OK)
        outbox_db_close(&relay->db);
}

void outbox_tell_figures(struct outbox_relay *relay, bool last)
{
    const struct outbox_counts counts = relay->counts;
    struct depth depth = {.known = false};

    if (relay->events == NULL || (!last && hf__now_ns() < relay->figures_ns))
        return;
    relay->figures_ns = hf__now_ns() + OUTBOX_FIGURES_MS * HF__NS_PER_MS;
    relay->counts = (struct outbox_counts){.sent = 0};
    ask_depth(relay, &depth);
    if (!depth.known)
        EVENTS_SAY(relay->events, EVENT_RELAYED, EVENT_NUMBER("sent", (int64_t)counts.sent),
                   EVENT_NUMBER("retried", (int64_t)counts.retried),
                   EVENT_NUMBER("dead", (int64_t)counts.dead));
    else
        EVENTS_SAY(relay->events, EVENT_RELAYED, EVENT_NUMBER("messages", depth.messages),
                   EVENT_NUMBER("oldest_ms", depth.oldest_ms), EVENT_NUMBER("parked", depth.parked),
                   EVENT_NUMBER("dead_now", depth.dead), EVENT_NUMBER("sent", (int64_t)counts.sent),
                   EVENT_NUMBER("retried", (int64_t)counts.retried),
                   EVENT_NUMBER("dead", (int64_t)counts.dead));
}
