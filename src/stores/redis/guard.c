/* guard.c - the incarnation guard, our side of it. The decisions are in scripts/handshake.lua,
 * where the server's clock and replication id are. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/verdict.h"

#include <stdio.h>
#include <string.h>

/* The handshake and what rides along: which commands the server has besides. */
enum { REPLY_HANDSHAKE, REPLY_COMMANDS, REPLY_PROBE };

#define LOADING_PAUSE_MS 50 /* before asking again while the server reads its data */

/* What became of one handshake. */
enum outcome { OUTCOME_FINAL, OUTCOME_NO_SCRIPT, OUTCOME_LOADING };

void rd_guard_ask(struct rd_node *node, struct rd_request *request)
{
    char key[sizeof node->handshake_key];
    char probe[sizeof key + 8];

    pthread_mutex_lock(&node->lock);
    memcpy(key, node->handshake_key, sizeof key);
    pthread_mutex_unlock(&node->lock);
    (void)snprintf(probe, sizeof probe, "%s:probe", key);
    rd_request_begin(request, 5);
    rd_request_word(request, "EVALSHA");
    rd_request_word(request, rd_scripts[RD_SCRIPT_HANDSHAKE].sha1);
    rd_request_word(request, "1");
    rd_request_word(request, key);
    rd_request_number(request, node->url->to_look ? 0 : node->url->max_ttl_ms);
    rd_request_command(request, (const char *const[]){"COMMAND", "INFO", "delex", "delifeq", NULL});
    /* COMMAND INFO does not tell a command's options. On a key that does not exist this changes
     * nothing: it is nil where IFEQ is known and a syntax error elsewhere. */
    rd_request_command(request,
                       (const char *const[]){"SET", probe, "x", "IFEQ", "x", "PX", "1", NULL});
}

enum hf_status rd_guard_load(struct rd_node *node, const struct rd_patience *patience,
                             struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *replies[RD_SCRIPT_COUNT];
    enum hf_status status;

    rd_script_load_all(&request);
    status = rd_node_ask(node, &request, RD_SCRIPT_COUNT, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++) {
        if (replies[i]->type == RD_REPLY_ERROR && status == HF_OK)
            status = rd_verdict_fail(replies[i]->text, NULL, node->url->shown, err);
        rd_reply_free(replies[i]);
    }
    return status;
}

static void note_commands(struct rd_node *node, const struct rd_reply *commands,
                          const struct rd_reply *probe)
{
    node->delete_kind = RD_DELETE_SCRIPT;
    if (rd_reply_at(commands, 1)->type == RD_REPLY_ARRAY)
        node->delete_kind = RD_DELETE_DELIFEQ;
    if (rd_reply_at(commands, 0)->type == RD_REPLY_ARRAY)
        node->delete_kind = RD_DELETE_DELEX;
    node->set_ifeq = probe->type == RD_REPLY_NIL;
}

static void warn_of_eviction(const struct rd_node *node, const char *policy)
{
    if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
        node->host->log("store %s: maxmemory-policy %s may evict locks and their tokens; "
                        "noeviction is the safe one",
                        node->url->shown, policy);
}

/* Takes the answer in. Node's lock held. */
static enum hf_status take_in(struct rd_node *node, struct rd_reply *const *replies,
                              struct hf_error *err)
{
    const struct rd_reply *answer = replies[REPLY_HANDSHAKE];
    const char *shown = node->url->shown;
    bool open = rd_reply_is(answer, "open");
    const char *id = rd_reply_text(rd_reply_at(answer, 1));
    int64_t left_ms;
    int len;

    if (answer->type == RD_REPLY_ERROR)
        return rd_verdict_fail(answer->text, NULL, shown, err);
    if (rd_reply_is(answer, "replica"))
        return rd_verdict_fail("READONLY", NULL, shown, err);
    if (rd_reply_is(answer, "max_ttl"))
        return hf__fail(
            err, HF_INVALID,
            "store %.130s: its clients agreed on max_ttl=%sms and you ask for %lldms; all "
            "need the same (see holdfast-redis(7) for how to change it)",
            shown, id, (long long)node->url->max_ttl_ms);
    if (!open && !rd_reply_is(answer, "quarantine"))
        return hf__fail(err, HF_CORRUPT, "store %.150s: the key %s is damaged; delete it", shown,
                        node->handshake_key);
    note_commands(node, replies[REPLY_COMMANDS], replies[REPLY_PROBE]);
    warn_of_eviction(node, rd_reply_text(rd_reply_at(answer, open ? 2 : 3)));
    len = snprintf(node->incarnation, sizeof node->incarnation, "master_replid:%s", id);
    if (len != RD_INCARNATION_LEN)
        return hf__fail(err, HF_UNSUPPORTED, "store %.150s: the server has no replication id",
                        shown);
    node->open = open;
    if (open)
        return hf__ok(err);
    left_ms = rd_reply_number(rd_reply_at(answer, 2), 1);
    (void)hf__fail(err, HF_QUARANTINE,
                   "store %.120s: the server restarted or was promoted and may have forgotten who "
                   "holds what; it grants again in %lld ms",
                   shown, (long long)left_ms);
    if (err != NULL)
        err->retry_after_ms = left_ms;
    return HF_QUARANTINE;
}

enum hf_status rd_guard_hear(struct rd_node *node, struct rd_reply *const *replies,
                             struct hf_error *err)
{
    enum hf_status status;

    pthread_mutex_lock(&node->lock);
    status = take_in(node, replies, err);
    pthread_mutex_unlock(&node->lock);
    return status;
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
    default:
        return OUTCOME_FINAL;
    }
}

static enum hf_status shake_hands(struct rd_node *node, const struct rd_patience *patience,
                                  enum outcome *outcome, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *replies[RD_GUARD_REPLIES];
    enum hf_status status;

    rd_guard_ask(node, &request);
    status = rd_node_ask(node, &request, RD_GUARD_REPLIES, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    *outcome = outcome_of(replies[REPLY_HANDSHAKE]);
    status = rd_guard_hear(node, replies, err);
    for (size_t i = 0; i < RD_GUARD_REPLIES; i++)
        rd_reply_free(replies[i]);
    return status;
}

enum hf_status rd_guard_pass(struct rd_node *node, const struct rd_patience *patience,
                             char id[RD_INCARNATION_LEN + 1], struct hf_error *err)
{
    enum hf_status status;
    bool loaded = false;

    rd_guard_known(node, id);
    if (id[0] != '\0')
        return HF_OK;
    for (;;) {
        enum outcome outcome = OUTCOME_FINAL;
        struct rd_patience pause = *patience;

        status = shake_hands(node, patience, &outcome, err);
        if (outcome == OUTCOME_FINAL || (outcome == OUTCOME_NO_SCRIPT && loaded))
            break;
        if (outcome == OUTCOME_NO_SCRIPT) {
            loaded = true;
            status = rd_guard_load(node, patience, err);
            if (status != HF_OK)
                break;
            continue;
        }
        pause.deadline_ns = node->host->now_ns() + LOADING_PAUSE_MS * HF__NS_PER_MS;
        if (pause.deadline_ns >= patience->deadline_ns ||
            rd_wait(-1, 0, &pause) == RD_WAIT_CANCELLED)
            break;
    }
    if (status == HF_OK)
        rd_guard_known(node, id);
    return status;
}

void rd_guard_known(struct rd_node *node, char id[RD_INCARNATION_LEN + 1])
{
    pthread_mutex_lock(&node->lock);
    if (node->open)
        memcpy(id, node->incarnation, RD_INCARNATION_LEN + 1);
    else
        id[0] = '\0';
    pthread_mutex_unlock(&node->lock);
}

void rd_guard_forget(struct rd_node *node, const char *id)
{
    pthread_mutex_lock(&node->lock);
    if (strcmp(node->incarnation, id) == 0)
        node->open = false;
    pthread_mutex_unlock(&node->lock);
}
