/* auth.c - what a new connection sends first. */
#include "base/base.h"
#include "stores/redis/errors.h"
#include "stores/redis/wire/pool.h"

#include <string.h>

/* A greeting under way. */
struct greeting {
    const struct rd_pool *pool;
    struct rd_conn *conn;
    const struct hf__patience *patience;
    struct rd_request request;
    char refused[160]; /* the last error reply, cut; "": none */
};

/* Sends the request, and empties it: it may be a password. One answer. */
static enum hf_status say(struct greeting *g, struct hf_error *err)
{
    struct rd_reply *reply;
    enum hf_status status = rd_conn_send(g->conn, &g->request, g->patience);

    rd_request_clear(&g->request);
    g->refused[0] = '\0';
    if (status == HF_OK)
        status = rd_conn_receive(g->conn, g->patience, &reply);
    if (status == HF_CANCELLED || status == HF_NOMEM)
        return rd_pool_fail(g->pool, status, "cancelled", err);
    if (status != HF_OK)
        return rd_pool_fail(g->pool, HF_UNREACHABLE, g->conn->why, err);
    if (reply->type == RD_REPLY_ERROR)
        hf__copy_printable(g->refused, sizeof g->refused, reply->text);
    rd_reply_free(reply);
    return HF_OK;
}

static enum hf_status authenticate(struct greeting *g, struct hf_error *err)
{
    const struct rd_url *url = &g->pool->setup->url;
    const char *user = url->parts.user[0] != '\0' ? url->parts.user : "default";
    enum hf_status status;

    rd_request_command(
        &g->request, (const char *const[]){"HELLO", "2", "AUTH", user, url->parts.password, NULL});
    status = say(g, err);
    if (status != HF_OK || g->refused[0] == '\0' || rd_verdict(g->refused) == RD_NOAUTH)
        return status;
    /* A server before version 6, or a proxy: the older word for it. */
    if (url->parts.user[0] != '\0')
        rd_request_command(&g->request,
                           (const char *const[]){"AUTH", user, url->parts.password, NULL});
    else
        rd_request_command(&g->request, (const char *const[]){"AUTH", url->parts.password, NULL});
    return say(g, err);
}

enum hf_status rd_greet(const struct rd_pool *pool, struct rd_conn *conn,
                        const struct hf__patience *patience, struct hf_error *err)
{
    const struct rd_url *url = &pool->setup->url;
    struct greeting g = {.pool = pool, .conn = conn, .patience = patience};
    enum hf_status status = HF_OK;

    if (url->parts.has_password || url->parts.user[0] != '\0')
        status = authenticate(&g, err);
    if (status == HF_OK && g.refused[0] == '\0' && url->db != 0) {
        rd_request_begin(&g.request, 2);
        rd_request_word(&g.request, "SELECT");
        rd_request_number(&g.request, url->db);
        status = say(&g, err);
    }
    rd_request_release(&g.request);
    if (status != HF_OK || g.refused[0] == '\0')
        return status;
    return rd_greeting_refused(g.refused, url->parts.shown, err);
}
