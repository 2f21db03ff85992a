/* fence.c - fenced keys: one script judges the token, raises the mark and changes the key. */
#include "base/base.h"
#include "stores/redis/redis.h"

#include <holdfast/fence.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARG_COUNT = 7, MARK_KEY_MAX = RD_SIDE_MAX + 8 };

static const char *op_word(enum hf_fence_op op)
{
    switch (op) {
    case HF_FENCE_SET:
        return "set";
    case HF_FENCE_DEL:
        return "del";
    case HF_FENCE_ENTER_KEY:
        return "enter";
    case HF_FENCE_RESET_KEY:
        return "reset";
    case HF_FENCE_READ_KEY:
        return "read";
    }
    return "?";
}

/* "holdfast:{KEY}:fence", beside the record's "holdfast:{KEY}:t". */
static void mark_key(char out[MARK_KEY_MAX], const struct rd_keys *keys)
{
    (void)snprintf(out, MARK_KEY_MAX, "%.*sfence", (int)strlen(keys->counter) - 1, keys->counter);
}

static void build(struct rd_request *out, const struct hf_fence_request *request,
                  const struct rd_keys *keys)
{
    char mark[MARK_KEY_MAX];

    mark_key(mark, keys);
    rd_request_begin(out, 3 + 2 + ARG_COUNT);
    rd_request_word(out, "EVALSHA");
    rd_request_word(out, rd_scripts[RD_SCRIPT_FENCE].sha1);
    rd_request_number(out, 2);
    rd_request_word(out, keys->lock);
    rd_request_word(out, mark);
    rd_request_word(out, op_word(request->op));
    rd_request_number(out, (int64_t)request->token);
    rd_request_word(out, request->issuer);
    if (request->op == HF_FENCE_RESET_KEY)
        rd_request_word(out, request->reason);
    else
        rd_request_bytes(out, request->value_len > 0 ? request->value : "", request->value_len);
    rd_request_number(out, request->ttl_ms);
    rd_request_word(out, "array");
    rd_request_word(out, request->issuer_url != NULL ? request->issuer_url : "");
}

/* Of {WORD, token, seconds, issuer}. False: it makes no sense. */
static bool read_mark(const struct rd_reply *reply, struct hf_fence_mark *mark)
{
    const char *at = rd_reply_text(rd_reply_at(reply, 2));
    uint64_t seconds = 0;

    (void)snprintf(mark->issuer, sizeof mark->issuer, "%s", rd_reply_text(rd_reply_at(reply, 3)));
    if (hf__parse_u64(at, &seconds) && seconds < INT64_MAX / 1000000)
        mark->admitted_us = (int64_t)seconds * 1000000;
    return hf__parse_u64(rd_reply_text(rd_reply_at(reply, 1)), &mark->token);
}

/* OK, {'MARK' or 'STALE', token, seconds, issuer} or {'FOREIGN', issuer}. */
static enum hf_status judge(const struct rd_store *store, const char *key,
                            const struct rd_reply *reply, struct hf_fence_mark *mark,
                            struct hf_error *err)
{
    if (rd_reply_is(reply, "OK"))
        return hf__ok(err);
    if (rd_reply_is(reply, "MARK") && read_mark(reply, mark))
        return hf__ok(err);
    if (rd_reply_is(reply, "STALE") && read_mark(reply, mark))
        return HF_STALE;
    if (!rd_reply_is(reply, "FOREIGN"))
        return rd_nonsense(&store->setup.url, key, err);
    (void)snprintf(mark->issuer, sizeof mark->issuer, "%s", rd_reply_text(rd_reply_at(reply, 1)));
    return HF_INVALID;
}

enum hf_status rd_fence(struct hf_store_base *base, const struct hf_fence_request *request,
                        struct hf_fence_mark *mark, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request words = {0};
    struct rd_answer answer;
    struct rd_keys keys;
    struct rd_call call = {.lock = request->key,
                           .patience = {.deadline_ns = request->deadline_ns, .cancel_fd = -1},
                           .request = &words};
    const char *why;
    enum hf_status status;

    /* The key is the caller's own: the prefix is for locks. */
    if (!rd_keys_make(&keys, "", request->key, &why))
        return hf__fail(err, HF_INVALID, "key \"%.60s\" in store %.80s: %s", request->key,
                        store->setup.url.parts.shown, why);
    call.slot = rd_route_slot(store, &keys);
    build(&words, request, &keys);
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&words);
    if (status != HF_OK)
        return status;
    status = judge(store, request->key, answer.reply, mark, err);
    rd_answer_release(&answer);
    return status;
}
