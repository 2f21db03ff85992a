/* hold.c - POST /v1/renew and POST /v1/release. */
#include "serve/answer.h"
#include "serve/attempts.h"
#include "serve/handler.h"
#include "serve/metrics.h"

#include "base/base.h"

#include <holdfast/relay.h>
#include <inttypes.h>
#include <string.h>

/* "taken", as `loss` says it. */
static const char *loss_word(enum hf_loss loss)
{
    static const char *const words[] = {
        [HF_LOSS_NONE] = "unknown",        [HF_LOSS_EXPIRED] = "expired",
        [HF_LOSS_TAKEN] = "taken",         [HF_LOSS_BROKEN] = "broken",
        [HF_LOSS_FORGOTTEN] = "forgotten", [HF_LOSS_UNREACHABLE] = "unreachable",
        [HF_LOSS_CLOSED] = "closed"};

    return (size_t)loss < sizeof words / sizeof *words ? words[loss] : "unknown";
}

static void fail_lost(struct exchange *x, const struct hf_grant *grant, const struct hf_error *err)
{
    struct text more = {0};

    text_printf(&more, ", \"loss\": \"%s\"", loss_word(grant->loss));
    if (grant->loss == HF_LOSS_BROKEN && grant->revocation->by[0] != '\0') {
        text_printf(&more, ", \"by\": ");
        text_json(&more, grant->revocation->by);
    }
    if (grant->loss == HF_LOSS_BROKEN && grant->revocation->reason[0] != '\0') {
        text_printf(&more, ", \"reason\": ");
        text_json(&more, grant->revocation->reason);
    }
    answer_fail(x, err, &more);
    text_release(&more);
}

/* ttl_ms is what was asked for; 0: it was a look. */
static void answer_renewed(struct exchange *x, uint32_t ttl_ms, const struct hf_grant *grant)
{
    int64_t after_ms = handler_after_ms(x->read_at_ns, grant->sent_at_ns);
    int64_t left_ms = ttl_ms != 0 ? (int64_t)grant->ttl_ms : grant->remaining_ms;
    uint32_t whole_ms = grant->ttl_ms;

    if (whole_ms == 0 && left_ms > 0) /* a store that does not know the ttl on record */
        whole_ms = left_ms < HF_TTL_MAX_MS ? (uint32_t)left_ms : HF_TTL_MAX_MS;
    answer_ok(x, "\"ttl_ms\": %" PRIu32 ", \"valid_ms\": %" PRId64 "%s", whole_ms,
              handler_valid_ms(after_ms, left_ms, whole_ms),
              grant->loss == HF_LOSS_BROKEN ? ", \"loss\": \"broken\"" : "");
}

void serve_renew(struct exchange *x)
{
    struct body body;
    struct hf_revocation revocation = {.at_ms = 0};
    struct hf_grant grant = {.revocation = &revocation};
    struct hf_claim claim;
    struct hf_error err;
    enum hf_status status;
    int64_t from_ns;

    if (!handler_body(x, &body, BODY_NAME | BODY_OWNER | BODY_TOKEN | BODY_TTL_MS) ||
        !handler_ttl_allowed(x, body.ttl_ms))
        return;
    claim = (struct hf_claim){.name = body.name,
                              .owner = body.owner,
                              .token = body.token,
                              .ttl_ms = body.ttl_ms,
                              .cancel_fd = -1};
    from_ns = hf__now_ns();
    status = hf_relay_renew(x->serve->store, &claim, &grant, &err);
    metrics_store(x->serve->metrics, OP_RENEW, status, hf__now_ns() - from_ns);
    if (status == HF_OK)
        answer_renewed(x, body.ttl_ms, &grant);
    else if (status == HF_LOST)
        fail_lost(x, &grant, &err);
    else
        serve_fail(x, &err);
    explicit_bzero(&body, sizeof body);
}

void serve_release(struct exchange *x)
{
    struct body body;
    struct hf_claim claim;
    struct hf_error err;
    enum hf_status status;
    int64_t from_ns;

    if (!handler_body(x, &body, BODY_NAME | BODY_OWNER))
        return;
    claim = (struct hf_claim){
        .name = body.name, .owner = body.owner, .token = body.token, .cancel_fd = -1};
    attempts_settle(x->serve->attempts, body.owner);
    from_ns = hf__now_ns();
    status = hf_relay_release(x->serve->store, &claim, &err);
    metrics_store(x->serve->metrics, OP_RELEASE, status, hf__now_ns() - from_ns);
    if (status == HF_OK)
        answer_ok(x, "%s", "");
    else if (status == HF_LOST)
        fail_lost(x, &(const struct hf_grant){.loss = HF_LOSS_NONE}, &err);
    else
        serve_fail(x, &err);
    explicit_bzero(&body, sizeof body);
}
