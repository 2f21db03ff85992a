/* quarantine.c - what is said of a server that grants nothing yet, and ending that by hand. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdio.h>
#include <string.h>

/* {'quarantine', id, policy, ms left, why, uptime in ms} */
enum hf_status rd_quarantine_fail(const struct rd_node *node, const struct rd_reply *answer,
                                  struct hf_error *err)
{
    static const struct {
        const char *why, *sentence;
        bool tells_age; /* behind the sentence */
        const char *then, *end;
    } reasons[] = {
        {"new", "this Redis is empty and has been up for ", true,
         ": it is probably new, but may have forgotten a lock; it grants in ",
         " (to try things out: ?max_ttl=2s; if nobody holds a lock: holdfast repair --open)"},
        {"promoted",
         "this Redis was a replica and may not have heard of a lock that its master "
         "granted",
         false, "; it grants again in ", ""},
        {"slots",
         "this server of the cluster may have taken slots over without their data; "
         "locks that it has no record of",
         false, " are granted in ", ""},
        {"restarted", "this Redis has been up for ", true,
         " and may have forgotten a lock; it grants again in ", ""}};
    size_t last = sizeof reasons / sizeof *reasons - 1;
    size_t i = 0;
    int64_t left_ms = rd_reply_number(rd_reply_at(answer, 3), 1);
    char left[32];
    char age[32] = "";

    while (i < last && strcmp(rd_reply_text(rd_reply_at(answer, 4)), reasons[i].why) != 0)
        i++;
    (void)hf__format_duration(left, sizeof left, left_ms);
    if (reasons[i].tells_age)
        (void)hf__format_duration(age, sizeof age, rd_reply_number(rd_reply_at(answer, 5), 0));
    (void)hf__fail_lock(err, HF_QUARANTINE, NULL, node->pool.setup->url.parts.shown, ": %s%s%s%s%s",
                        reasons[i].sentence, age, reasons[i].then, left, reasons[i].end);
    if (err != NULL)
        err->retry_after_ms = left_ms;
    return HF_QUARANTINE;
}

/* Asks one server. A script that it has forgotten is loaded: that changes nothing of what it knows.
 */
enum hf_status rd_quarantine_inquire(struct rd_node *node, const struct hf__patience *patience,
                                     struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_reply *reply = NULL;
    enum hf_status status;

    rd_incarnation_inquire(node, &request);
    status = rd_pool_ask(&node->pool, &request, 1, patience, &reply, err);
    if (status == HF_OK && reply->type == RD_REPLY_ERROR &&
        rd_verdict(reply->text) == RD_NOSCRIPT) {
        rd_reply_free(reply);
        status = rd_node_load(node, patience, err);
        if (status == HF_OK)
            status = rd_pool_ask(&node->pool, &request, 1, patience, &reply, err);
    }
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    status = rd_incarnation_judge(node, reply, err);
    rd_reply_free(reply);
    return status;
}

/* Of several servers the one that grants last is told of. */
enum hf_status rd_quarantine(struct hf_store_base *base, int64_t deadline_ns, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct hf__patience patience = {.deadline_ns = deadline_ns, .cancel_fd = -1};
    struct rd_node *nodes[RD_NODES_MAX];
    struct hf_error last = {0}, said;
    size_t count = 0;
    enum hf_status status = rd_route_all(store, &patience, nodes, &count, err);

    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        status = rd_quarantine_inquire(nodes[i], &patience, &said);
        if (status != HF_OK && status != HF_QUARANTINE)
            return rd_pass(err, &said);
        if (status == HF_QUARANTINE && said.retry_after_ms > last.retry_after_ms)
            last = said;
    }
    return rd_pass(err, &last);
}

static enum hf_status judge(const struct rd_node *node, const struct rd_reply *reply,
                            int64_t *left_ms, struct hf_error *report)
{
    if (reply->type == RD_REPLY_ERROR)
        return rd_verdict_fail(reply->text, NULL, node->pool.setup->url.parts.shown, report);
    if (rd_reply_is(reply, "replica"))
        return rd_verdict_fail("READONLY", NULL, node->pool.setup->url.parts.shown, report);
    if (rd_reply_is(reply, "new"))
        return hf__fail_lock(report, HF_UNREACHABLE, NULL, node->pool.setup->url.parts.shown,
                             ": the server restarted or was promoted just now, which began "
                             "another quarantine; ask again");
    *left_ms = rd_reply_is(reply, "opened") ? rd_reply_number(rd_reply_at(reply, 1), 1) : 0;
    return HF_OK;
}

/* Who ends it, and why. */
struct ending {
    const char *label, *reason;
    struct hf__patience patience;
    int64_t left_ms; /* what was left of it, at the server that had most; 0: none */
};

/* Ends the quarantine of the life that was met last. */
static enum hf_status end_at(struct rd_node *node, struct ending *e, struct hf_error *report)
{
    struct rd_request request = {0};
    struct rd_reply *reply;
    enum hf_status status;
    int64_t left_ms = 0;
    char id[RD_INCARNATION_LEN + 1];
    char key[sizeof node->handshake_key];
    char copy[sizeof node->handshake_copy];

    pthread_mutex_lock(&node->lock);
    memcpy(id, node->incarnation, sizeof id);
    memcpy(key, node->handshake_key, sizeof key);
    memcpy(copy, node->handshake_copy, sizeof copy);
    pthread_mutex_unlock(&node->lock);
    rd_request_command(&request,
                       (const char *const[]){"EVALSHA", rd_scripts[RD_SCRIPT_END_QUARANTINE].sha1,
                                             "1", key, id, copy, e->label, e->reason, NULL});
    status = rd_pool_ask(&node->pool, &request, 1, &e->patience, &reply, report);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    status = judge(node, reply, &left_ms, report);
    rd_reply_free(reply);
    if (left_ms > e->left_ms)
        e->left_ms = left_ms;
    return status;
}

/* The handshake first: it tells which life is meant, and loads the scripts. */
static enum hf_status meet_and_end(struct rd_node *node, struct ending *e, struct hf_error *report)
{
    struct rd_met met;
    enum hf_status status = rd_incarnation_meet(node, -1, &e->patience, &met, report);

    if (status != HF_OK && status != HF_QUARANTINE)
        return status;
    status = rd_node_load(node, &e->patience, report);
    if (status == HF_OK)
        status = end_at(node, e, report);
    if (status == HF_OK)
        status = rd_incarnation_meet(node, -1, &e->patience, &met, report);
    return status;
}

enum hf_status rd_end_quarantine(struct hf_store_base *base, const char *label, const char *reason,
                                 int64_t deadline_ns, struct hf_error *report)
{
    struct rd_store *store = (struct rd_store *)base;
    struct ending e = {.label = label,
                       .reason = reason,
                       .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1}};
    struct rd_node *nodes[RD_NODES_MAX];
    size_t count = 0;
    enum hf_status status = rd_route_all(store, &e.patience, nodes, &count, report);
    char left[32];

    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = meet_and_end(nodes[i], &e, report);
    if (status != HF_OK)
        return status;
    if (e.left_ms == 0)
        return hf__fail_lock(report, HF_INVALID, NULL, store->setup.url.parts.shown,
                             " is open: there is no quarantine to end");
    return hf__fail_lock(report, HF_OK, NULL, store->setup.url.parts.shown,
                         " grants again; the quarantine had %s left",
                         hf__format_duration(left, sizeof left, e.left_ms));
}
