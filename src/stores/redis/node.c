/* node.c - one server. */
#include "stores/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>

struct rd_node *rd_node_open(const struct rd_setup *setup, const struct hf__address *address)
{
    struct rd_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    (void)snprintf(node->handshake_key, sizeof node->handshake_key, "holdfast:inc");
    if (!rd_pool_init(&node->pool, setup, address)) {
        free(node);
        return NULL;
    }
    if (pthread_mutex_init(&node->lock, NULL) != 0) {
        rd_pool_release(&node->pool, false);
        free(node);
        return NULL;
    }
    return node;
}

void rd_node_close(struct rd_node *node, bool forked)
{
    rd_pool_release(&node->pool, forked);
    if (!forked)
        pthread_mutex_destroy(&node->lock);
    free(node);
}

enum hf_status rd_node_load(struct rd_node *node, const struct hf__patience *patience,
                            struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *replies[RD_SCRIPT_COUNT];
    enum hf_status status;

    rd_script_load_all(&request);
    status = rd_pool_ask(&node->pool, &request, RD_SCRIPT_COUNT, patience, replies, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++) {
        if (replies[i]->type == RD_REPLY_ERROR && status == HF_OK)
            status =
                rd_verdict_fail(replies[i]->text, NULL, node->pool.setup->url.parts.shown, err);
        rd_reply_free(replies[i]);
    }
    return status;
}
