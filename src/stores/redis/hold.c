/* hold.c - renewing and releasing what is held. */
#include "stores/redis/redis.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static struct rd_call urgent_call(struct rd_store *store, const struct hf_claim *claim,
                                  const struct rd_keys *keys, const struct rd_request *request)
{
    return (struct rd_call){.lock = claim->name,
                            .slot = rd_route_slot(store, keys),
                            .urgent = true,
                            .patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1},
                            .request = request};
}

/* The server that will be asked, for what it knows besides scripts; NULL if it is not known. */
static struct rd_node *likely_node(struct rd_store *store, const struct rd_keys *keys,
                                   const struct hf_claim *claim)
{
    struct hf__patience patience = {.deadline_ns = claim->deadline_ns, .cancel_fd = -1};
    struct rd_node *node;

    return rd_route(store, rd_route_slot(store, keys), &patience, &node, NULL) == HF_OK ? node
                                                                                        : NULL;
}

static enum hf_status look(struct rd_store *store, const struct hf_claim *claim,
                           const struct rd_keys *keys, struct hf_grant *grant, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_call call = urgent_call(store, claim, keys, &request);
    struct rd_answer answer;
    enum hf_status status;

    rd_script_begin(&request, RD_SCRIPT_LOOK, keys, 2);
    rd_request_word(&request, claim->owner);
    rd_request_number(&request, (int64_t)claim->token);
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
    if (rd_reply_is(answer.reply, "held")) {
        int64_t ttl_ms = rd_reply_number(rd_reply_at(answer.reply, 2), 0);

        grant->sent_at_ns = answer.sent_at_ns;
        grant->remaining_ms = rd_reply_number(rd_reply_at(answer.reply, 1), 0);
        grant->ttl_ms = ttl_ms > 0 && ttl_ms <= HF_TTL_MAX_MS ? (uint32_t)ttl_ms : 0;
        if (rd_reply_text(rd_reply_at(answer.reply, 3))[0] != '\0')
            grant->loss = HF_LOSS_BROKEN;
        rd_vouch(store, claim->owner, claim->token, grant->ttl_ms);
        status = hf__ok(err);
    } else {
        status = rd_lost(&store->setup.url, claim->name, answer.reply, grant, err);
    }
    rd_answer_release(&answer);
    return status;
}

/* Whether this may be done without a script, which would compare the token as well, and put a new
 * ttl on record. */
static bool plainly(struct rd_store *store, struct rd_node *node, const struct hf_claim *claim)
{
    return rd_incarnation_commands(node).set_ifeq && rd_vouched(store, claim);
}

/* "SET key owner IFEQ owner PX ttl" */
static void plain_renewal(struct rd_request *request, const struct hf_claim *claim,
                          const struct rd_keys *keys)
{
    rd_request_begin(request, 7);
    rd_request_word(request, "SET");
    rd_request_word(request, keys->lock);
    rd_request_word(request, claim->owner);
    rd_request_word(request, "IFEQ");
    rd_request_word(request, claim->owner);
    rd_request_word(request, "PX");
    rd_request_number(request, claim->ttl_ms);
}

static void scripted_renewal(struct rd_request *request, const struct hf_claim *claim,
                             const struct rd_keys *keys)
{
    rd_script_begin(request, RD_SCRIPT_RENEW, keys, 3);
    rd_request_word(request, claim->owner);
    rd_request_number(request, claim->ttl_ms);
    rd_request_number(request, (int64_t)claim->token);
}

/* The script's answer. */
static enum hf_status take_scripted(struct rd_store *store, const struct hf_claim *claim,
                                    const struct rd_reply *reply, struct hf_grant *grant,
                                    struct hf_error *err)
{
    if (rd_reply_number(reply, 0) != 1)
        return rd_lost(&store->setup.url, claim->name, reply, grant, err);
    rd_vouch(store, claim->owner, claim->token, claim->ttl_ms);
    return hf__ok(err);
}

/* Without a script. False: the script has to do it. */
static bool renew_plainly(struct rd_store *store, const struct hf_claim *claim,
                          const struct rd_keys *keys, struct hf_grant *grant,
                          enum hf_status *status, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_call call = urgent_call(store, claim, keys, &request);
    struct rd_answer answer;
    bool held;

    plain_renewal(&request, claim, keys);
    *status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    /* Refused for whatever reason: SET needs memory and a permission that the script does not. */
    if (*status != HF_OK)
        return *status == HF_UNKNOWN;
    held = rd_reply_is(answer.reply, "OK");
    grant->sent_at_ns = answer.sent_at_ns;
    rd_answer_release(&answer);
    return held;
}

enum hf_status rd_renew(struct hf_store_base *base, const struct hf_claim *claim,
                        struct hf_grant *grant, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_answer answer;
    struct rd_call call;
    struct rd_keys keys;
    struct rd_node *node;
    enum hf_status status = rd_claim_keys(&store->setup.url, claim->name, &keys, err);

    if (status != HF_OK)
        return status;
    if (claim->ttl_ms == 0)
        return look(store, claim, &keys, grant, err);
    status = rd_check_ttl(&store->setup.url, claim, err);
    if (status != HF_OK)
        return status;
    node = likely_node(store, &keys, claim);
    if (node != NULL && plainly(store, node, claim) &&
        renew_plainly(store, claim, &keys, grant, &status, err))
        return status == HF_OK ? hf__ok(err) : status;

    call = urgent_call(store, claim, &keys, &request);
    scripted_renewal(&request, claim, &keys);
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    grant->sent_at_ns = answer.sent_at_ns;
    status = take_scripted(store, claim, answer.reply, grant, err);
    rd_answer_release(&answer);
    return status;
}

/* Renewals of many holds at once, each with its keys and the server that has them; NULL: none, or
 * it has been asked. */
struct renewals {
    struct rd_store *store;
    const struct hf_claim *claims;
    struct hf_grant *grants;
    enum hf_status *results;
    size_t count;
    struct rd_keys *keys;
    struct rd_node **node_of;
    struct hf_error *err;
};

/* The pipeline for one server. */
static void build_renewals(const struct renewals *r, struct rd_node *node,
                           struct rd_request *request)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->node_of[i] != node)
            continue;
        if (plainly(r->store, node, &r->claims[i]))
            plain_renewal(request, &r->claims[i], &r->keys[i]);
        else
            scripted_renewal(request, &r->claims[i], &r->keys[i]);
    }
}

/* One reply of the pipeline. An error or a surprise is sorted out by a renewal of its own: an
 * answer came, so this one did not extend anything. */
static enum hf_status take_renewal(const struct renewals *r, size_t i, const struct rd_reply *reply)
{
    if (rd_reply_is(reply, "OK"))
        return HF_OK;
    if (rd_reply_number(reply, 0) == 1 || rd_reply_is(reply, "lost"))
        return take_scripted(r->store, &r->claims[i], reply, &r->grants[i], r->err);
    return rd_renew(&r->store->base, &r->claims[i], &r->grants[i], r->err);
}

/* The patience of the one who has least. */
static struct hf__patience least_patience(const struct renewals *r)
{
    struct hf__patience least = {.deadline_ns = HF_NEVER, .cancel_fd = -1};

    for (size_t i = 0; i < r->count; i++)
        least = hf__patience_until(&least, r->claims[i].deadline_ns);
    return least;
}

/* Sends what one server has to renew and takes the answers. */
static void renew_at(struct renewals *r, struct rd_node *node)
{
    struct hf__patience patience = least_patience(r);
    struct rd_request request = {0};
    struct rd_conn *conn = NULL;
    int64_t sent_at_ns;
    enum hf_status status;

    build_renewals(r, node, &request);
    status = rd_pool_take(&node->pool, true, &patience, &conn, r->err);
    sent_at_ns = r->store->base.host->now_ns();
    if (status == HF_OK && (status = rd_conn_send(conn, &request, &patience)) != HF_OK)
        (void)rd_pool_fail(&node->pool, status, conn->why, r->err);
    for (size_t i = 0; i < r->count; i++) {
        struct rd_reply *reply = NULL;

        if (r->node_of[i] != node)
            continue;
        if (status == HF_OK && (status = rd_conn_receive(conn, &patience, &reply)) != HF_OK)
            (void)rd_pool_fail(&node->pool, status, conn->why, r->err);
        r->grants[i].sent_at_ns = sent_at_ns;
        r->results[i] = status != HF_OK ? status : take_renewal(r, i, reply);
        r->node_of[i] = NULL;
        rd_reply_free(reply);
    }
    if (status != HF_OK)
        rd_route_forget(r->store, node);
    rd_pool_give(&node->pool, conn);
    rd_request_release(&request);
}

/* Finds the keys of one claim, and the server that has them. */
static enum hf_status find_node(struct renewals *r, size_t i)
{
    struct hf__patience patience = {.deadline_ns = r->claims[i].deadline_ns, .cancel_fd = -1};
    enum hf_status status =
        rd_claim_keys(&r->store->setup.url, r->claims[i].name, &r->keys[i], r->err);

    if (status != HF_OK)
        return status;
    return rd_route(r->store, rd_route_slot(r->store, &r->keys[i]), &patience, &r->node_of[i],
                    r->err);
}

enum hf_status rd_renew_many(struct hf_store_base *base, const struct hf_claim *claims,
                             struct hf_grant *grants, enum hf_status *results, size_t count,
                             struct hf_error *err)
{
    struct renewals r = {.store = (struct rd_store *)base,
                         .claims = claims,
                         .grants = grants,
                         .results = results,
                         .count = count,
                         .keys = calloc(count + 1, sizeof *r.keys),
                         .node_of = calloc(count + 1, sizeof *r.node_of),
                         .err = err};
    bool room = r.keys != NULL && r.node_of != NULL;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < count; i++)
        results[i] = room ? find_node(&r, i) : hf__nomem(err);
    for (size_t i = 0; i < count && room; i++)
        if (r.node_of[i] != NULL)
            renew_at(&r, r.node_of[i]);
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = results[i];
    free(r.keys);
    free(r.node_of);
    return status == HF_OK ? hf__ok(err) : status;
}

/* Wakes the next one after a delete that could not. If this gets lost, the waiters' own slow poll
 * finds the lock. */
static void pass_on(struct rd_store *store, const struct hf_claim *claim,
                    const struct rd_keys *keys, struct rd_node *node)
{
    struct rd_request request = {0};
    struct rd_call call = urgent_call(store, claim, keys, &request);
    char id[RD_INCARNATION_LEN + 1];
    struct rd_answer answer;

    rd_incarnation_known(node, id);
    rd_script_begin(&request, RD_SCRIPT_LEAVE, keys, 3);
    rd_request_word(&request, id);
    rd_request_word(&request, "");
    rd_request_word(&request, claim->owner);
    if (rd_call(store, &call, &answer, NULL, NULL) == HF_OK)
        rd_answer_release(&answer);
    rd_request_release(&request);
}

/* "DELEX key IFEQ owner" or "DELIFEQ key owner", and a look whether somebody waits, in one go. */
static void build_plain_release(struct rd_release *r)
{
    const char *owner = r->claim->owner;

    r->call.two = true;
    if (r->kind == RD_DELETE_DELEX)
        rd_request_command(&r->request,
                           (const char *const[]){"DELEX", r->keys.lock, "IFEQ", owner, NULL});
    else
        rd_request_command(&r->request,
                           (const char *const[]){"DELIFEQ", r->keys.lock, owner, NULL});
    rd_request_command(&r->request, (const char *const[]){"EXISTS", r->keys.queue, NULL});
}

static void build_scripted_release(struct rd_release *r)
{
    char id[RD_INCARNATION_LEN + 1] = "";

    r->call.two = false;
    if (r->node != NULL)
        rd_incarnation_known(r->node, id);
    rd_script_begin(&r->request, RD_SCRIPT_RELEASE, &r->keys, 3);
    rd_request_word(&r->request, r->claim->owner);
    rd_request_number(&r->request, (int64_t)r->claim->token);
    rd_request_word(&r->request, id);
}

enum hf_status rd_release_prepare(struct rd_release *r, struct rd_store *store,
                                  const struct hf_claim *claim, struct hf_error *err)
{
    enum hf_status status = rd_claim_keys(&store->setup.url, claim->name, &r->keys, err);

    if (status != HF_OK)
        return status;
    r->store = store;
    r->claim = claim;
    r->request = (struct rd_request){0};
    r->call = urgent_call(store, claim, &r->keys, &r->request);
    r->node = NULL;
    return HF_OK;
}

void rd_release_build(struct rd_release *r, struct rd_node *node)
{
    r->node = node;
    r->kind = node != NULL && rd_vouched(r->store, r->claim)
                  ? rd_incarnation_commands(node).delete_kind
                  : RD_DELETE_SCRIPT;
    if (r->kind == RD_DELETE_SCRIPT)
        build_scripted_release(r);
    else
        build_plain_release(r);
}

bool rd_release_worked(const struct rd_release *r, const struct rd_answer *answer)
{
    return rd_reply_number(answer->reply, 0) == 1 &&
           (r->kind == RD_DELETE_SCRIPT || rd_reply_number(answer->second, 1) == 0);
}

/* By plain commands. False: the script has to do it. */
static bool release_plainly(struct rd_release *r, enum hf_status *status, struct hf_error *err)
{
    struct rd_answer answer;
    bool freed;

    *status = rd_call(r->store, &r->call, &answer, NULL, err);
    if (*status != HF_OK)
        return *status == HF_UNKNOWN;
    freed = rd_reply_number(answer.reply, 0) == 1;
    if (freed && !rd_release_worked(r, &answer))
        pass_on(r->store, r->claim, &r->keys, answer.node);
    rd_answer_release(&answer);
    return freed;
}

enum hf_status rd_release_carry_out(struct rd_release *r, struct hf_error *err)
{
    struct rd_answer answer;
    enum hf_status status;

    if (r->kind != RD_DELETE_SCRIPT) {
        if (release_plainly(r, &status, err)) {
            rd_request_release(&r->request);
            return status == HF_OK ? hf__ok(err) : status;
        }
        rd_request_clear(&r->request);
        build_scripted_release(r);
    }
    status = rd_call(r->store, &r->call, &answer, NULL, err);
    rd_request_release(&r->request);
    if (status != HF_OK)
        return status;
    status = rd_reply_number(answer.reply, 0) == 1
                 ? hf__ok(err)
                 : rd_lost(&r->store->setup.url, r->claim->name, answer.reply, NULL, err);
    rd_answer_release(&answer);
    return status;
}

enum hf_status rd_release(struct hf_store_base *base, const struct hf_claim *claim,
                          struct hf_error *err)
{
    struct rd_release r; /* it is filled in */
    enum hf_status status = rd_release_prepare(&r, (struct rd_store *)base, claim, err);

    if (status != HF_OK)
        return status;
    rd_release_build(&r, likely_node(r.store, &r.keys, claim));
    return rd_release_carry_out(&r, err);
}
