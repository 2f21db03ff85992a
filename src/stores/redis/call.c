/* call.c - one request and its answer, wherever the key may live. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define TRIES_MAX    200 /* redirections, reloads and pauses of one call */
#define PAUSE_MS     50  /* before asking again after LOADING or TRYAGAIN */
#define UNDO_SEND_MS 20  /* what sending the undo may cost */

void rd_answer_release(struct rd_answer *answer)
{
    rd_reply_free(answer->reply);
    rd_reply_free(answer->second);
    answer->reply = NULL;
    answer->second = NULL;
}

/* What to do after an answer. */
enum next { NEXT_DONE, NEXT_AGAIN, NEXT_FAIL };

/* Loads all scripts at once; what one of them was refused with takes the place of *reply. */
static bool load_scripts(struct rd_node *node, struct rd_conn *conn,
                         const struct hf__patience *patience, struct rd_reply **reply)
{
    struct rd_request request = {0};
    enum hf_status status;
    bool loaded = true;

    node->pool.setup->host->log("redis: loading the scripts into %s:%u", node->pool.address.host,
                                node->pool.address.port);
    rd_script_load_all(&request);
    status = rd_conn_send(conn, &request, patience);
    rd_request_release(&request);
    for (size_t i = 0; i < RD_SCRIPT_COUNT && status == HF_OK; i++) {
        struct rd_reply *answer;

        status = rd_conn_receive(conn, patience, &answer);
        if (status != HF_OK)
            break;
        if (answer->type == RD_REPLY_ERROR && loaded) {
            rd_reply_free(*reply);
            *reply = answer;
            loaded = false;
        } else {
            rd_reply_free(answer);
        }
    }
    return status == HF_OK && loaded;
}

/* No answer came. As long as the connection stands, what takes the request back can follow it on
 * the same way, where it cannot overtake; then an orderly end, so that the server reads both. */
static bool send_undo(const struct rd_call *call, struct rd_conn *conn)
{
    struct hf__patience soon = {.deadline_ns = hf__now_ns() + UNDO_SEND_MS * HF__NS_PER_MS,
                                .cancel_fd = -1};
    struct rd_request request = {0};
    bool sent;

    /* On a connection that ended, or that we end with answers unread, nothing is sure to arrive. */
    if (call->undo == NULL || !conn->late)
        return false;
    call->undo(call->data, &request);
    sent = rd_conn_send(conn, &request, &soon) == HF_OK;
    rd_request_release(&request);
    if (sent)
        (void)shutdown(conn->fd, SHUT_WR);
    return sent;
}

/* A call under way. */
struct trip {
    struct rd_store *store;
    const struct rd_call *call;
    struct rd_node *detour; /* whom to ask just once, instead of the slot's server; NULL: nobody */
    struct rd_answer *out;
    bool undone;
};

/* Sends on a connection that is ready and waits for the answer. asking: the server has the slot
 * this once only. */
static enum hf_status exchange(struct trip *trip, struct rd_node *node, struct rd_conn *conn,
                               bool asking, struct hf_error *err)
{
    const struct rd_call *call = trip->call;
    struct rd_answer *out = trip->out;
    struct rd_request ask = {0};
    struct rd_reply *accepted = NULL;
    enum hf_status status = HF_OK;

    if (asking) {
        rd_request_command(&ask, (const char *const[]){"ASKING", NULL});
        status = rd_conn_send(conn, &ask, &call->patience);
        rd_request_release(&ask);
    }
    if (out->node == NULL) { /* else it was sent before */
        out->sent_at_ns = node->pool.setup->host->now_ns();
        out->node = node;
        if (status == HF_OK)
            status = rd_conn_send(conn, call->request, &call->patience);
    }
    if (status != HF_OK) {
        (void)rd_pool_fail(&node->pool, status, conn->why, err);
        return status;
    }
    if (asking)
        status = rd_conn_receive(conn, &call->patience, &accepted);
    if (status == HF_OK && out->reply == NULL)
        status = rd_conn_receive(conn, &call->patience, &out->reply);
    if (status == HF_OK && call->two && out->second == NULL)
        status = rd_conn_receive(conn, &call->patience, &out->second);
    rd_reply_free(accepted);
    if (status != HF_OK) {
        trip->undone = send_undo(call, conn);
        rd_answer_release(out);
        return hf__fail_lock(err, status, call->lock, node->pool.setup->url.parts.shown,
                             ": no answer: %s; it may have taken effect", conn->why);
    }
    return HF_OK;
}

static enum next pause_and_retry(const struct rd_call *call)
{
    int64_t end_ns = hf__now_ns() + PAUSE_MS * HF__NS_PER_MS;

    if (end_ns >= call->patience.deadline_ns)
        return NEXT_FAIL;
    return hf__patience_pause(&call->patience, end_ns) == HF__WAITED_READY ? NEXT_AGAIN : NEXT_FAIL;
}

/* The server to ask instead, after MOVED or ASK. */
static struct rd_node *redirected(struct rd_store *store, const char *error,
                                  const struct rd_node *from, bool moved)
{
    struct hf__address address;
    struct rd_node *node;
    unsigned slot;

    if (!rd_verdict_address(error, &address, &slot))
        return NULL;
    if (address.host[0] == '\0')
        memcpy(address.host, from->pool.address.host, sizeof address.host);
    node = rd_route_node(store, &address);
    if (node != NULL && moved)
        rd_route_moved(store, slot, node);
    return node;
}

/* What an answer means for the call: that it is over, or that it may be sent again. */
static enum next judge(struct trip *trip, struct rd_conn *conn)
{
    struct rd_store *store = trip->store;
    const struct rd_call *call = trip->call;
    struct rd_answer *answer = trip->out;
    const char *error;

    assert(answer->reply != NULL);
    error = answer->reply->text;

    /* A script on a replica says so itself, before it would hit the read-only wall. */
    if (answer->reply->type == RD_REPLY_ARRAY && rd_reply_is(answer->reply, "replica"))
        error = "READONLY";
    else if (answer->reply->type != RD_REPLY_ERROR)
        return NEXT_DONE;
    switch (rd_verdict(error)) {
    case RD_NOSCRIPT:
        return load_scripts(answer->node, conn, &call->patience, &answer->reply) ? NEXT_AGAIN
                                                                                 : NEXT_FAIL;
    case RD_MOVED:
        return redirected(store, error, answer->node, true) != NULL ? NEXT_AGAIN : NEXT_FAIL;
    case RD_ASK:
        trip->detour = redirected(store, error, answer->node, false);
        return trip->detour != NULL ? NEXT_AGAIN : NEXT_FAIL;
    case RD_TRYAGAIN:
    case RD_LOADING:
        return pause_and_retry(call);
    case RD_READONLY:
        rd_route_forget(store, answer->node);
        return rd_route_moves(store) ? pause_and_retry(call) : NEXT_FAIL;
    case RD_BUSY_SCRIPT:
    case RD_OOM:
    case RD_MISCONF:
    case RD_NOREPLICAS:
    case RD_DOWN:
    case RD_NOPERM:
    case RD_NOAUTH:
    case RD_WRONGTYPE:
    case RD_CROWDED:
    case RD_PROTECTED:
    case RD_OTHER_ERROR:
        break;
    }
    return NEXT_FAIL;
}

bool rd_call_send(struct rd_node *node, const struct rd_call *call)
{
    const struct hf__patience none = {.deadline_ns = 0, .cancel_fd = -1};
    struct rd_conn *conn = rd_pool_take_idle(&node->pool);
    int64_t at_ns = node->pool.setup->host->now_ns();

    if (conn == NULL)
        return false;
    if (rd_conn_send(conn, call->request, &none) != HF_OK) {
        rd_pool_give(&node->pool, conn);
        return false;
    }
    *call->sent = (struct rd_sent){.conn = conn, .answer = {.node = node, .sent_at_ns = at_ns}};
    return true;
}

bool rd_call_answered(const struct rd_call *call, int64_t until_ns)
{
    struct rd_conn *conn = call->sent->conn;
    struct rd_answer *answer = &call->sent->answer;

    return rd_conn_peek(conn, until_ns, &answer->reply) &&
           (!call->two || rd_conn_peek(conn, until_ns, &answer->second));
}

/* From here on, connection and replies are the call's. */
static struct rd_conn *take_sent(struct rd_sent *sent, struct rd_answer *out)
{
    struct rd_conn *conn = sent->conn;

    *out = sent->answer;
    sent->conn = NULL;
    return conn;
}

/* One try at one server. */
static enum next try_once(struct trip *trip, enum hf_status *status, struct hf_error *err)
{
    struct rd_store *store = trip->store;
    const struct rd_call *call = trip->call;
    struct rd_node *node = trip->detour;
    bool asking = node != NULL;
    struct rd_conn *conn;
    enum next next;

    trip->detour = NULL;
    *trip->out = (struct rd_answer){0};
    if (call->sent != NULL && call->sent->conn != NULL) {
        conn = take_sent(call->sent, trip->out);
        node = trip->out->node;
        assert(node != NULL); /* it was sent to somebody */
    } else {
        if (!asking &&
            (*status = rd_route(store, call->slot, &call->patience, &node, err)) != HF_OK)
            return NEXT_DONE;
        *status = rd_pool_take(&node->pool, call->urgent, &call->patience, &conn, err);
        if (*status != HF_OK) {
            rd_route_forget(store, node);
            return *status == HF_UNREACHABLE && rd_route_moves(store) ? pause_and_retry(call)
                                                                      : NEXT_DONE;
        }
    }
    *status = exchange(trip, node, conn, asking, err);
    if (*status != HF_OK) {
        rd_route_forget(store, node);
        rd_pool_give(&node->pool, conn);
        return NEXT_DONE;
    }
    next = judge(trip, conn);
    if (next != NEXT_DONE) {
        const struct rd_reply *reply = trip->out->reply;
        const char *error = reply->type == RD_REPLY_ERROR ? reply->text : "READONLY";

        *status = rd_verdict_fail(error, call->lock, store->setup.url.parts.shown, err);
        rd_answer_release(trip->out);
    }
    rd_pool_give(&node->pool, conn);
    return next;
}

enum hf_status rd_call(struct rd_store *store, const struct rd_call *call, struct rd_answer *out,
                       bool *undone, struct hf_error *err)
{
    struct trip trip = {.store = store, .call = call, .out = out};
    enum hf_status status = HF_UNREACHABLE;

    for (int tries = 0; tries < TRIES_MAX; tries++)
        if (try_once(&trip, &status, err) != NEXT_AGAIN)
            break;
    if (undone != NULL)
        *undone = trip.undone;
    return status;
}
