/* redlock_node.c - one node of a redlock: its connections, who it is, whether it votes.
 *
 * A connection may owe answers that nobody waits for any more: those of a node that was slower than
 * the majority. Requests and answers keep their order, so whoever takes the connection next sends
 * behind them, and the answers owed are read past. */
#include "stores/redis/redlock.h"
#include "base/base.h"
#include "stores/redis/verdict.h"

#include <stdio.h>
#include <string.h>

#define TRUST_NS        (10 * HF__NS_PER_MS) /* a connection used so lately is not looked at again */
#define RETRY_MIN_MS    50 /* the pause after a node could not be reached        */
#define RETRY_MAX_MS    2000
#define RETRY_DOUBLINGS 5

static enum hf_status meet(struct rl_store *store, unsigned index, bool votes, struct rd_conn **out,
                           struct hf_error *err);

/* Reads what is owed, as far as it is there. False: the connection is no use any more. */
static bool settle(struct rd_conn *conn)
{
    for (;;) {
        struct rd_reply *reply;

        if (rd_conn_glance(conn, &reply) != HF_OK)
            return false;
        if (reply == NULL)
            return conn->owed <= RL_OWED_MAX;
        rd_reply_free(reply);
        if (conn->owed == 0)
            return false; /* an answer to nothing */
        conn->owed--;
    }
}

static struct rd_conn *take_idle(struct rl_store *store, unsigned index)
{
    struct rl_node *node = &store->node[index];

    for (;;) {
        struct rd_conn *conn;

        pthread_mutex_lock(&node->lock);
        conn = node->idle;
        if (conn != NULL) {
            node->idle = conn->next;
            node->idle_count--;
        }
        pthread_mutex_unlock(&node->lock);
        if (conn == NULL ||
            (conn->owed <= RL_OWED_MAX &&
             store->rd.base.host->now_ns() - conn->used_ns < TRUST_NS) ||
            settle(conn))
            return conn;
        conn->broken = true;
        rd_node_give(node->node, conn);
    }
}

enum hf_status rl_node_take(struct rl_store *store, unsigned index, bool votes,
                            struct rd_conn **out, char id[RD_INCARNATION_LEN + 1],
                            struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    enum hf_status status;

    rd_guard_known(node->node, id);
    *out = id[0] != '\0' || !votes ? take_idle(store, index) : NULL;
    if (*out != NULL)
        return HF_OK;
    status = meet(store, index, votes, out, err);
    rd_guard_known(node->node, id);
    if (status == HF_OK && votes && id[0] == '\0') {
        rl_node_give(store, index, *out);
        return rd_node_fail(node->node, HF_UNREACHABLE, "it restarted just now", err);
    }
    return status;
}

void rl_node_give(struct rl_store *store, unsigned index, struct rd_conn *conn)
{
    struct rl_node *node = &store->node[index];

    if (conn == NULL)
        return;
    conn->used_ns = store->rd.base.host->now_ns();
    pthread_mutex_lock(&node->lock);
    if (!conn->broken && node->idle_count < RD_IDLE_MAX) {
        conn->next = node->idle;
        node->idle = conn;
        node->idle_count++;
        conn = NULL;
    }
    pthread_mutex_unlock(&node->lock);
    if (conn != NULL) {
        conn->broken = true;
        rd_node_give(node->node, conn);
    }
}

void rl_node_settle(struct rl_store *store, unsigned index, int64_t deadline_ns)
{
    struct rd_patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};

    for (struct rd_conn *conn = store->node[index].idle; conn != NULL; conn = conn->next)
        for (; conn->owed > 0; conn->owed--) {
            struct rd_reply *reply;

            if (rd_conn_receive(conn, &patience, &reply) != HF_OK)
                break;
            rd_reply_free(reply);
        }
}

void rl_node_unload(struct rl_store *store, unsigned index)
{
    struct rl_node *node = &store->node[index];
    char id[RD_INCARNATION_LEN + 1];

    pthread_mutex_lock(&node->lock);
    node->loaded = false;
    pthread_mutex_unlock(&node->lock);
    rd_guard_known(node->node, id);
    if (id[0] != '\0')
        rd_guard_forget(node->node, id);
}

/* A node that cannot be reached is left alone for a while that grows, so that it costs its timeout
 * to few callers only. */
static void note_outcome(struct rl_store *store, unsigned index, bool reached)
{
    struct rl_node *node = &store->node[index];
    unsigned doublings;
    int64_t pause_ms;
    uint32_t dice;

    store->rd.base.host->random(&dice, sizeof dice);
    pthread_mutex_lock(&node->lock);
    doublings = node->failures < RETRY_DOUBLINGS ? node->failures : RETRY_DOUBLINGS;
    pause_ms = (int64_t)RETRY_MIN_MS << doublings;
    if (pause_ms > RETRY_MAX_MS)
        pause_ms = RETRY_MAX_MS;
    pause_ms = pause_ms / 2 + dice % (pause_ms / 2 + 1);
    node->failures = reached ? 0 : node->failures + 1;
    node->retry_at_ns = reached ? 0 : store->rd.base.host->now_ns() + pause_ms * HF__NS_PER_MS;
    pthread_mutex_unlock(&node->lock);
}

static enum hf_status load_scripts(struct rl_node *node, const struct rd_patience *patience,
                                   struct hf_error *err)
{
    struct rd_reply *replies[RD_SCRIPT_COUNT];
    struct rd_request request = {0};
    enum hf_status status;

    rd_script_load_all(&request);
    status = rd_node_ask(node->node, &request, RD_SCRIPT_COUNT, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++) {
        if (replies[i]->type == RD_REPLY_ERROR && status == HF_OK)
            status = rd_verdict_fail(replies[i]->text, NULL, node->node->url->shown, err);
        rd_reply_free(replies[i]);
    }
    return status;
}

/* The same server behind two names would have two votes; and after a node forgot its counter, the
 * order of tokens rests on clocks that are less than max_ttl/3 apart. */
static enum hf_status compare(struct rl_store *store, unsigned index, struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    const struct rd_address *mine = &node->node->address;
    int64_t limit_us = store->rd.url.max_ttl_ms * 1000 / 3;
    unsigned near = 0, far = 0;

    for (unsigned i = 0; i < store->count; i++) {
        struct rl_node *other = &store->node[i];
        char run_id[RL_RUN_ID_MAX];
        int64_t apart_us;

        if (i == index)
            continue;
        pthread_mutex_lock(&other->lock);
        memcpy(run_id, other->run_id, sizeof run_id);
        apart_us = other->offset_us - node->offset_us;
        pthread_mutex_unlock(&other->lock);
        if (run_id[0] == '\0')
            continue;
        if (strcmp(run_id, node->run_id) == 0)
            return hf__fail(err, HF_INVALID,
                            "store %.60s: %.40s:%u and %.40s:%u are one server; a redlock needs "
                            "independent ones",
                            store->rd.url.shown, other->node->address.host,
                            other->node->address.port, mine->host, mine->port);
        if (apart_us < limit_us && apart_us > -limit_us)
            near++;
        else
            far++;
    }
    if (far > near)
        return hf__fail(err, HF_INVALID,
                        "store %.80s: the clock of %.40s:%u is more than max_ttl/3 off; it gets no "
                        "vote",
                        store->rd.url.shown, mine->host, mine->port);
    return HF_OK;
}

/* Asks the node who it is and what time it has, once per incarnation. */
static enum hf_status identify(struct rl_store *store, unsigned index,
                               const struct rd_patience *patience, struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    struct rd_reply *replies[2];
    struct rd_request request = {0};
    const char *at;
    enum hf_status status;

    rd_request_command(&request, (const char *const[]){"INFO", "server", NULL});
    rd_request_command(&request, (const char *const[]){"TIME", NULL});
    status = rd_node_ask(node->node, &request, 2, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&node->lock);
    at = strstr(rd_reply_text(replies[0]), "run_id:");
    node->run_id[0] = '\0';
    if (at != NULL)
        (void)snprintf(node->run_id, sizeof node->run_id, "%.*s", (int)strcspn(at + 7, "\r\n"),
                       at + 7);
    node->offset_us = rd_reply_number(rd_reply_at(replies[1], 0), 0) * 1000000 +
                      rd_reply_number(rd_reply_at(replies[1], 1), 0) -
                      store->rd.base.host->now_ns() / 1000;
    pthread_mutex_unlock(&node->lock);
    rd_reply_free(replies[0]);
    rd_reply_free(replies[1]);
    return compare(store, index, err);
}

/* Makes sure that the node is who it was, or meets it anew. */
static enum hf_status introduce(struct rl_store *store, unsigned index,
                                const struct rd_patience *patience, struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    char id[RD_INCARNATION_LEN + 1];
    enum hf_status status = HF_OK;
    bool loaded, checked;

    pthread_mutex_lock(&node->lock);
    loaded = node->loaded;
    pthread_mutex_unlock(&node->lock);
    if (!loaded && (status = load_scripts(node, patience, err)) != HF_OK)
        return status;
    pthread_mutex_lock(&node->lock);
    node->loaded = true;
    pthread_mutex_unlock(&node->lock);
    status = rd_guard_pass(node->node, patience, id, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&node->lock);
    checked = strcmp(id, node->checked) == 0;
    pthread_mutex_unlock(&node->lock);
    if (checked)
        return HF_OK;
    status = identify(store, index, patience, err);
    if (status == HF_OK) {
        pthread_mutex_lock(&node->lock);
        memcpy(node->checked, id, sizeof node->checked);
        pthread_mutex_unlock(&node->lock);
    } else {
        rd_guard_forget(node->node, id);
    }
    return status;
}

static enum hf_status meet(struct rl_store *store, unsigned index, bool votes, struct rd_conn **out,
                           struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    int64_t now_ns = store->rd.base.host->now_ns();
    struct rd_patience patience = {
        .deadline_ns = now_ns + store->rd.url.node_timeout_ms * HF__NS_PER_MS, .cancel_fd = -1};
    enum hf_status status = HF_OK;
    bool too_soon;

    pthread_mutex_lock(&node->lock);
    too_soon = now_ns < node->retry_at_ns;
    pthread_mutex_unlock(&node->lock);
    pthread_mutex_lock(&node->node->lock);
    too_soon = too_soon || now_ns < node->node->not_before_ns;
    pthread_mutex_unlock(&node->node->lock);
    if (too_soon)
        return rd_node_fail(node->node, HF_UNREACHABLE, "it could not be reached a moment ago",
                            err);
    if (votes)
        status = introduce(store, index, &patience, err);
    if (status == HF_OK && (*out = take_idle(store, index)) == NULL)
        status = rd_node_take(node->node, true, &patience, out, err);
    if (status != HF_QUARANTINE)
        note_outcome(store, index, status == HF_OK);
    return status;
}
