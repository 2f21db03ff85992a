/* identity.c - who a Redis is: a random text kept beside the locks. It is lost with the data, and what
 * comes after that is another store. */
#include "base/base.h"
#include "stores/redis/redis.h"

#include <stdio.h>
#include <string.h>

#define IDENTITY_KEY "holdfast:identity"
enum { RANDOM_BYTES = 16 };

/* Sends one command about the key; *out is what it answered. */
static enum hf_status ask(struct rd_store *store, const struct rd_request *request,
                          int64_t deadline_ns, char *out, size_t size, struct hf_error *err)
{
    struct rd_call call = {.lock = IDENTITY_KEY,
                           .slot = store->cluster ? rd_slot(IDENTITY_KEY) : 0,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .request = request};
    struct rd_answer answer;
    enum hf_status status = rd_call(store, &call, &answer, NULL, err);

    if (status != HF_OK)
        return status;
    (void)snprintf(out, size, "%s", rd_reply_text(answer.reply));
    rd_answer_release(&answer);
    return HF_OK;
}

enum hf_status rd_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    unsigned char random[RANDOM_BYTES];
    char fresh[2 * RANDOM_BYTES + 1];
    char is[2 * RANDOM_BYTES + 1];
    struct rd_request request = {0};
    enum hf_status status;

    /* Whoever comes first names it; a name that is there stays. */
    hf__random(random, sizeof random);
    hf__hex_encode(fresh, random, sizeof random);
    rd_request_command(&request, (const char *const[]){"SET", IDENTITY_KEY, fresh, "NX", NULL});
    status = ask(store, &request, deadline_ns, is, sizeof is, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    memset(&request, 0, sizeof request);
    rd_request_command(&request, (const char *const[]){"GET", IDENTITY_KEY, NULL});
    status = ask(store, &request, deadline_ns, is, sizeof is, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    if (strlen(is) != sizeof is - 1)
        return rd_nonsense(&store->setup.url, IDENTITY_KEY, err);
    (void)snprintf(out, HF_IDENTITY_SIZE, "id:redis:%s", is);
    return hf__ok(err);
}
