/* begun.c - taking and releasing a lock in two halves: one thread sends the request, and looks for
 * the answer for a moment; that one or another does the rest.
 *
 * Only what needs no waiting is begun: the server is known and grants, and a connection is idle. */
#include "base/base.h"
#include "stores/redis/attempt.h"

#include <stdlib.h>

struct hf_begun {
    bool takes; /* else it gives back */
    struct rd_attempt attempt;
    struct rd_release release;
    struct rd_sent sent; /* of the release */
};

static bool begin_acquire(struct hf_begun *begun, struct rd_store *store, struct rd_node *node,
                          const struct hf_claim *claim)
{
    struct rd_attempt *a = &begun->attempt;
    struct rd_call call;

    if (rd_attempt_prepare(a, store, claim, 1, NULL) != HF_OK)
        return false;
    rd_incarnation_known(node, a->met.id);
    if (a->met.id[0] == '\0')
        return false;
    rd_ask_build(a);
    call = rd_attempt_call(a);
    if (rd_call_send(node, &call))
        return true;
    rd_request_release(&a->request);
    return false;
}

static bool begin_release(struct hf_begun *begun, struct rd_store *store, struct rd_node *node,
                          const struct hf_claim *claim)
{
    struct rd_release *r = &begun->release;

    if (rd_release_prepare(r, store, claim, NULL) != HF_OK)
        return false;
    rd_release_build(r, node);
    r->call.sent = &begun->sent;
    if (rd_call_send(node, &r->call))
        return true;
    rd_request_release(&r->request);
    return false;
}

struct hf_begun *rd_begin(struct hf_store_base *base, const struct hf_claim *claim)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_node *node = rd_route_known(store);
    struct hf_begun *begun = node != NULL ? malloc(sizeof *begun) : NULL;

    if (begun == NULL)
        return NULL;
    begun->takes = claim->token == 0;
    if (begun->takes ? begin_acquire(begun, store, node, claim)
                     : begin_release(begun, store, node, claim))
        return begun;
    free(begun);
    return NULL;
}

bool rd_answered(struct hf_store_base *base, struct hf_begun *begun, int64_t until_ns)
{
    struct rd_call call = begun->takes ? rd_attempt_call(&begun->attempt) : begun->release.call;
    const struct rd_answer *answer = &call.sent->answer;

    (void)base;
    /* Any other answer means that there is more to be asked, or to be waited for. */
    return rd_call_answered(&call, until_ns) &&
           (begun->takes
                ? answer->reply->type == RD_REPLY_STRING ||
                      (rd_reply_is(answer->reply, "busy") && !rd_attempt_waits(&begun->attempt))
                : rd_release_worked(&begun->release, answer));
}

enum hf_status rd_end(struct hf_store_base *base, struct hf_begun *begun, struct hf_grant *grant,
                      struct hf_error *err)
{
    struct hf_error own;
    enum hf_status status;

    (void)base;
    if (err == NULL)
        err = &own;
    status = begun->takes ? rd_attempt_carry_out(&begun->attempt, grant, err)
                          : rd_release_carry_out(&begun->release, err);
    free(begun);
    return status;
}
