/* auth.c - what a new connection says first. */
#include "stores/redis/wire/pool.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <string.h>

/* One command, one answer; *refused gets the text of an error reply, cut. */
static enum hf_status say(const struct rd_pool *pool, struct rd_conn *conn,
                          const struct rd_request *request, const struct hf__patience *patience,
                          char *refused, size_t size, struct hf_error *err)
{
    struct rd_reply *reply;
    enum hf_status status = rd_conn_send(conn, request, patience);

    refused[0] = '\0';
    if (status == HF_OK)
        status = rd_conn_receive(conn, patience, &reply);
    if (status == HF_CANCELLED || status == HF_NOMEM)
        return rd_pool_fail(pool, status, "cancelled", err);
    if (status != HF_OK)
        return rd_pool_fail(pool, HF_UNREACHABLE, conn->why, err);
    if (reply->type == RD_REPLY_ERROR)
        hf__copy_printable(refused, size, reply->text);
    rd_reply_free(reply);
    return HF_OK;
}

static enum hf_status authenticate(const struct rd_pool *pool, struct rd_conn *conn,
                                   struct rd_request *request, const struct hf__patience *patience,
                                   char *refused, size_t size, struct hf_error *err)
{
    const struct rd_url *url = &pool->setup->url;
    const char *user = url->user[0] != '\0' ? url->user : "default";
    enum hf_status status;

    rd_request_command(request,
                       (const char *const[]){"HELLO", "2", "AUTH", user, url->password, NULL});
    status = say(pool, conn, request, patience, refused, size, err);
    rd_request_clear(request);
    if (status != HF_OK || refused[0] == '\0' || rd_verdict(refused) == RD_NOAUTH)
        return status;
    /* A server before version 6, or a proxy: the older word for it. */
    if (url->user[0] != '\0')
        rd_request_command(request, (const char *const[]){"AUTH", user, url->password, NULL});
    else
        rd_request_command(request, (const char *const[]){"AUTH", url->password, NULL});
    status = say(pool, conn, request, patience, refused, size, err);
    rd_request_clear(request);
    return status;
}

enum hf_status rd_greet(const struct rd_pool *pool, struct rd_conn *conn,
                        const struct hf__patience *patience, struct hf_error *err)
{
    struct rd_request request = {0};
    char refused[160] = "";
    enum hf_status status = HF_OK;

    if (pool->setup->url.has_password || pool->setup->url.user[0] != '\0')
        status = authenticate(pool, conn, &request, patience, refused, sizeof refused, err);
    if (status == HF_OK && refused[0] == '\0' && pool->setup->url.db != 0) {
        rd_request_begin(&request, 2);
        rd_request_word(&request, "SELECT");
        rd_request_number(&request, pool->setup->url.db);
        status = say(pool, conn, &request, patience, refused, sizeof refused, err);
    }
    rd_request_release(&request);
    if (status != HF_OK || refused[0] == '\0')
        return status;
    status = rd_verdict_fail(refused, NULL, pool->setup->url.shown, err);
    /* "invalid password" had no word of its own once. */
    if (status == HF_UNSUPPORTED && strstr(refused, "password") != NULL)
        status = rd_verdict_fail("NOAUTH", NULL, pool->setup->url.shown, err);
    return status;
}
