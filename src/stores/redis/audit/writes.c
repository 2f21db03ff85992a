/* writes.c - whether the server takes writes now: it may be out of memory or of replicas, or unable
 * to save. It is asked to change a key that nobody has, only if it is there: so nothing changes,
 * and a server that refuses writes says so before it looks. */
#include "stores/redis/audit/audit.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdio.h>

/* What is said to whoever wants to write anything. */
static bool refuses_writes(enum rd_verdict verdict)
{
    return verdict == RD_OOM || verdict == RD_MISCONF || verdict == RD_NOREPLICAS ||
           verdict == RD_DOWN || verdict == RD_READONLY;
}

void rd_audit_tell_writes(const struct rd_audit *audit, struct rd_audited *server,
                          const struct hf__patience *patience)
{
    static const struct hf__topic topic = {"redis.refusal", NULL, "SET XX"};
    struct rd_request request = {0};
    struct rd_reply *reply;
    struct hf_error err;
    char key[RD_KEY_MAX];
    enum hf_status status;

    /* In the slot of a key that is this server's. */
    (void)snprintf(key, sizeof key, "%s:none", server->node->handshake_key);
    rd_request_command(&request, (const char *const[]){"SET", key, "", "XX", NULL});
    status = rd_pool_ask(&server->node->pool, &request, 1, patience, &reply, &err);
    rd_request_release(&request);
    if (status != HF_OK) {
        hf__tell_unknown(audit->teller, topic, err.text);
        return;
    }
    server->refuses = reply->type == RD_REPLY_ERROR && refuses_writes(rd_verdict(reply->text));
    if (reply->type == RD_REPLY_ERROR && !server->refuses)
        hf__tell_unknown(audit->teller, topic, reply->text);
    else
        hf__tell(audit->teller, topic, "%s", server->refuses ? reply->text : "");
    rd_reply_free(reply);
}
