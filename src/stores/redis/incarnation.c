/* incarnation.c - whether a server is still the one that granted: our side of it. The decisions are
 * in scripts/handshake.lua, where the server's clock and replication id are. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

/* The handshake and what rides along: which commands the server has besides. */
enum { REPLY_HANDSHAKE, REPLY_COMMANDS, REPLY_PROBE };

#define LOADING_PAUSE_MS 50   /* before asking again while the server reads its data */
#define MEET_MS          1000 /* what meeting one more server may take */

/* What became of one handshake. */
enum outcome { OUTCOME_FINAL, OUTCOME_NO_SCRIPT, OUTCOME_LOADING, OUTCOME_MOVED };

/* slot: of a lock without a record, or -1. reads: leaves no trace. key: where the record is. */
static void ask_who(struct rd_node *node, int slot, bool reads, struct rd_request *request,
                    char key[sizeof node->handshake_key])
{
    char copy[sizeof node->handshake_copy];

    pthread_mutex_lock(&node->lock);
    memcpy(key, node->handshake_key, sizeof node->handshake_key);
    memcpy(copy, node->handshake_copy, sizeof copy);
    pthread_mutex_unlock(&node->lock);
    rd_request_begin(request, 8);
    rd_request_word(request, "EVALSHA");
    rd_request_word(request, rd_scripts[RD_SCRIPT_HANDSHAKE].sha1);
    rd_request_word(request, "1");
    rd_request_word(request, key);
    rd_request_number(request, node->pool.setup->url.max_ttl_ms);
    rd_request_word(request, copy);
    if (slot >= 0)
        rd_request_number(request, slot);
    else
        rd_request_word(request, "");
    rd_request_word(request, reads ? "1" : "0");
}

static void ask(struct rd_node *node, int slot, struct rd_request *request)
{
    char key[sizeof node->handshake_key];
    char probe[sizeof key + 8];

    ask_who(node, slot, node->pool.setup->readonly, request, key);
    (void)snprintf(probe, sizeof probe, "%s:probe", key);
    rd_request_command(request, (const char *const[]){"COMMAND", "INFO", "delex", "delifeq", NULL});
    /* COMMAND INFO does not tell a command's options. On a key that does not exist this changes
     * nothing: it is nil where IFEQ is known and a syntax error elsewhere. */
    rd_request_command(request,
                       (const char *const[]){"SET", probe, "x", "IFEQ", "x", "PX", "1", NULL});
}

void rd_incarnation_inquire(struct rd_node *node, struct rd_request *request)
{
    char key[sizeof node->handshake_key];

    ask_who(node, -1, true, request, key);
}

void rd_incarnation_ask(struct rd_node *node, struct rd_request *request)
{
    ask(node, -1, request);
}

static struct rd_commands commands_of(const struct rd_reply *commands, const struct rd_reply *probe)
{
    struct rd_commands known = {.delete_kind = RD_DELETE_SCRIPT,
                                .set_ifeq = probe->type == RD_REPLY_NIL};

    if (rd_reply_at(commands, 1)->type == RD_REPLY_ARRAY)
        known.delete_kind = RD_DELETE_DELIFEQ;
    if (rd_reply_at(commands, 0)->type == RD_REPLY_ARRAY)
        known.delete_kind = RD_DELETE_DELEX;
    return known;
}

struct rd_commands rd_incarnation_commands(struct rd_node *node)
{
    struct rd_commands known;

    pthread_mutex_lock(&node->lock);
    known = node->commands;
    pthread_mutex_unlock(&node->lock);
    return known;
}

static void warn_of_eviction(const struct rd_node *node, const char *policy)
{
    if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
        node->pool.setup->host->log(
            "store %s: maxmemory-policy %s may evict locks and their tokens; "
            "noeviction is the safe one",
            node->pool.setup->url.parts.shown, policy);
}

/* An answer that is neither open nor quarantine. */
static enum hf_status refused(const struct rd_node *node, const struct rd_reply *answer,
                              struct hf_error *err)
{
    const char *shown = node->pool.setup->url.parts.shown;
    char agreed[32];
    char asked[32];

    if (answer->type == RD_REPLY_ERROR)
        return rd_verdict_fail(answer->text, NULL, shown, err);
    if (rd_reply_is(answer, "replica"))
        return rd_verdict_fail("READONLY", NULL, shown, err);
    if (!rd_reply_is(answer, "max_ttl"))
        return hf__fail_lock(err, HF_CORRUPT, NULL, shown, ": the key %s is damaged; delete it",
                             node->handshake_key);
    (void)hf__format_duration(agreed, sizeof agreed, rd_reply_number(rd_reply_at(answer, 1), 0));
    (void)hf__format_duration(asked, sizeof asked, node->pool.setup->url.max_ttl_ms);
    return hf__fail_lock(err, HF_INVALID, NULL, shown,
                         ": its clients agreed on max_ttl=%s, and you ask for %s; all need "
                         "the same (holdfast-redis(7) says how to change it)",
                         agreed, asked);
}

enum hf_status rd_incarnation_judge(const struct rd_node *node, const struct rd_reply *answer,
                                    struct hf_error *err)
{
    if (rd_reply_is(answer, "open"))
        return hf__ok(err);
    if (rd_reply_is(answer, "quarantine"))
        return rd_quarantine_fail(node, answer, err);
    return refused(node, answer, err);
}

/* Takes in what an open server said of its slots. */
static void take_shape(struct rd_node *node, const struct rd_reply *answer, struct rd_met *out)
{
    const char *shape = rd_reply_text(rd_reply_at(answer, 3));
    bool all = strcmp(rd_reply_text(rd_reply_at(answer, 4)), "all") == 0;

    (void)snprintf(out->shape, sizeof out->shape, "%s", shape);
    (void)snprintf(node->shape, sizeof node->shape, "%s", all ? shape : "");
}

/* Takes the answer in: what is said in *out is what this answer said, whatever others hear
 * meanwhile. Node's lock held. */
static enum hf_status take_in(struct rd_node *node, struct rd_reply *const *replies,
                              struct rd_met *out, struct hf_error *err)
{
    const struct rd_reply *answer = replies[REPLY_HANDSHAKE];
    bool open = rd_reply_is(answer, "open");
    char id[RD_INCARNATION_LEN + 1];
    int len;

    if (!open && !rd_reply_is(answer, "quarantine"))
        return refused(node, answer, err);
    node->commands = commands_of(replies[REPLY_COMMANDS], replies[REPLY_PROBE]);
    node->replicas = rd_reply_number(rd_reply_at(answer, 7), 0);
    warn_of_eviction(node, rd_reply_text(rd_reply_at(answer, 2)));
    len = snprintf(id, sizeof id, "master_replid:%s", rd_reply_text(rd_reply_at(answer, 1)));
    if (len != RD_INCARNATION_LEN)
        return hf__fail_lock(err, HF_UNSUPPORTED, NULL, node->pool.setup->url.parts.shown,
                             ": the server has no replication id");
    memcpy(node->incarnation, id, sizeof id);
    /* If only locks without a record have to wait, the others go on. */
    node->open = open || strcmp(rd_reply_text(rd_reply_at(answer, 4)), "slots") == 0;
    node->shape[0] = '\0';
    out->first = strcmp(rd_reply_text(rd_reply_at(answer, 6)), "first") == 0;
    if (!open)
        return rd_quarantine_fail(node, answer, err);
    memcpy(out->id, id, sizeof id);
    take_shape(node, answer, out);
    return hf__ok(err);
}

static enum hf_status hear(struct rd_node *node, struct rd_reply *const *replies,
                           struct rd_met *out, struct hf_error *err)
{
    enum hf_status status;

    pthread_mutex_lock(&node->lock);
    status = take_in(node, replies, out, err);
    pthread_mutex_unlock(&node->lock);
    return status;
}

enum hf_status rd_incarnation_hear(struct rd_node *node, struct rd_reply *const *replies,
                                   struct hf_error *err)
{
    struct rd_met met = {0};

    return hear(node, replies, &met, err);
}

static enum outcome outcome_of(const struct rd_reply *answer)
{
    if (answer->type != RD_REPLY_ERROR)
        return OUTCOME_FINAL;
    switch ((int)rd_verdict(answer->text)) {
    case RD_NOSCRIPT:
        return OUTCOME_NO_SCRIPT;
    case RD_LOADING:
        return OUTCOME_LOADING;
    case RD_MOVED:
    case RD_ASK:
        return OUTCOME_MOVED;
    default:
        return OUTCOME_FINAL;
    }
}

static enum hf_status shake_hands(struct rd_node *node, int slot,
                                  const struct hf__patience *patience, enum outcome *outcome,
                                  struct rd_met *out, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *replies[RD_MEETING_REPLIES];
    enum hf_status status;

    ask(node, slot, &request);
    status = rd_pool_ask(&node->pool, &request, RD_MEETING_REPLIES, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    *outcome = outcome_of(replies[REPLY_HANDSHAKE]);
    status = hear(node, replies, out, err);
    for (size_t i = 0; i < RD_MEETING_REPLIES; i++)
        rd_reply_free(replies[i]);
    return status;
}

/* The record's first place is in a slot that is leaving, or has left: tries the other one. */
static bool try_other_place(struct rd_node *node)
{
    char key[sizeof node->handshake_key];
    bool another;

    pthread_mutex_lock(&node->lock);
    another = strcmp(node->handshake_key, node->handshake_copy) != 0;
    memcpy(key, node->handshake_key, sizeof key);
    memcpy(node->handshake_key, node->handshake_copy, sizeof key);
    memcpy(node->handshake_copy, key, sizeof key);
    pthread_mutex_unlock(&node->lock);
    return another;
}

enum hf_status rd_incarnation_meet(struct rd_node *node, int slot,
                                   const struct hf__patience *patience, struct rd_met *out,
                                   struct hf_error *err)
{
    enum hf_status status;
    bool loaded = false;
    bool turned = false;

    for (;;) {
        enum outcome outcome = OUTCOME_FINAL;

        *out = (struct rd_met){0};
        status = shake_hands(node, slot, patience, &outcome, out, err);
        out->moved = outcome == OUTCOME_MOVED;
        if (outcome == OUTCOME_FINAL || (outcome == OUTCOME_NO_SCRIPT && loaded))
            return status;
        if (outcome == OUTCOME_MOVED) {
            if (turned || !try_other_place(node))
                return status;
            turned = true;
        } else if (outcome == OUTCOME_NO_SCRIPT) {
            loaded = true;
            status = rd_node_load(node, patience, err);
            if (status != HF_OK)
                return status;
        } else {
            int64_t again_ns = node->pool.setup->host->now_ns() + LOADING_PAUSE_MS * HF__NS_PER_MS;

            if (again_ns >= patience->deadline_ns ||
                hf__patience_pause(patience, again_ns) != HF__WAITED_READY)
                return status;
        }
    }
}

enum hf_status rd_incarnation_pass(struct rd_node *node, const struct hf__patience *patience,
                                   struct rd_met *out, struct hf_error *err)
{
    *out = (struct rd_met){0};
    pthread_mutex_lock(&node->lock);
    if (node->open) {
        memcpy(out->id, node->incarnation, sizeof out->id);
        memcpy(out->shape, node->shape, sizeof out->shape);
    }
    pthread_mutex_unlock(&node->lock);
    return out->id[0] != '\0' ? HF_OK : rd_incarnation_meet(node, -1, patience, out, err);
}

void rd_incarnation_meet_all(struct rd_store *store, const struct hf__patience *patience)
{
    struct rd_node *nodes[RD_NODES_MAX];
    size_t count;

    if (rd_route_all(store, patience, nodes, &count, NULL) != HF_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct hf__patience brief =
            hf__patience_until(patience, store->base.host->now_ns() + MEET_MS * HF__NS_PER_MS);
        struct rd_met met;

        (void)rd_incarnation_pass(nodes[i], &brief, &met, NULL);
    }
}

void rd_incarnation_known(struct rd_node *node, char id[RD_INCARNATION_LEN + 1])
{
    pthread_mutex_lock(&node->lock);
    if (node->open)
        memcpy(id, node->incarnation, RD_INCARNATION_LEN + 1);
    else
        id[0] = '\0';
    pthread_mutex_unlock(&node->lock);
}

void rd_incarnation_forget(struct rd_node *node, const char *id)
{
    pthread_mutex_lock(&node->lock);
    if (strcmp(node->incarnation, id) == 0)
        node->open = false;
    pthread_mutex_unlock(&node->lock);
}
