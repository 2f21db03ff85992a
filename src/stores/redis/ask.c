/* ask.c - the requests of an attempt, and what their answers mean. */
#include "base/base.h"
#include "stores/redis/attempt.h"
#include "stores/redis/errors.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define QUEUE_MS 3000 /* how long the queue keeps a silent waiter: LEASE_MS of queue.lua */

/* The keys of one of the claims. They could be made before. */
static void keys_of(const struct rd_attempt *a, size_t index, struct rd_keys *out)
{
    (void)rd_claim_keys(&a->store->setup.url, a->claims[index].name, out, NULL);
}

/* "EVALSHA sha keys..." of all locks; arg_count words have to follow. */
static void begin(const struct rd_attempt *a, struct rd_request *request, enum rd_script_id id,
                  size_t arg_count)
{
    struct rd_keys keys;

    rd_request_begin(request, 3 + 2 * a->count + arg_count);
    rd_request_word(request, "EVALSHA");
    rd_request_word(request, rd_scripts[id].sha1);
    rd_request_number(request, (int64_t)(2 * a->count));
    for (size_t i = 0; i < a->count; i++) {
        keys_of(a, i, &keys);
        rd_request_word(request, keys.lock);
        rd_request_word(request, keys.counter);
    }
}

static void add_owners(const struct rd_attempt *a, struct rd_request *request)
{
    for (size_t i = 0; i < a->count; i++)
        rd_request_word(request, a->claims[i].owner);
}

/* The claim on the first, which is all there is to a claim on one; more_count words have to
 * follow. */
static void begin_claim(struct rd_attempt *a, enum rd_script_id id, size_t more_count)
{
    const struct hf_claim *claim = a->claims;
    const char *label = claim->label != NULL ? claim->label : "";
    char record[HF_LABEL_MAX + HF_OWNER_LEN + 32];
    char ttl[16];
    char *at = record;

    (void)snprintf(ttl, sizeof ttl, "%u", claim->ttl_ms);
    at = stpcpy(at, ttl);
    *at++ = ' ';
    at = stpcpy(at, a->flags);
    *at++ = ' ';
    at = mempcpy(at, claim->owner, HF_OWNER_LEN);
    *at++ = ' ';
    at = mempcpy(at, label, strnlen(label, HF_LABEL_MAX));
    *at = '\0';
    rd_script_begin(&a->request, id, &a->keys, 5 + more_count);
    rd_request_word(&a->request, claim->owner);
    rd_request_word(&a->request, ttl);
    rd_request_word(&a->request, a->met.id);
    rd_request_word(&a->request, rd_attempt_waits(a) ? "1" : "0");
    rd_request_word(&a->request, record);
}

static void build_one(struct rd_attempt *a)
{
    begin_claim(a, RD_SCRIPT_ACQUIRE, 1);
    rd_request_word(&a->request, !a->store->cluster        ? ""
                                 : a->met.shape[0] != '\0' ? a->met.shape
                                                           : "-");
}

static void build_any(struct rd_attempt *a)
{
    char ends[(HF_OWNER_LEN - RD_PARTY_LEN) * HF_SEVERAL_MAX];
    char *at = ends;

    assert(a->count <= HF_SEVERAL_MAX);
    for (size_t i = 0; i < a->count; i++)
        at = mempcpy(at, a->claims[i].owner + RD_PARTY_LEN, HF_OWNER_LEN - RD_PARTY_LEN);
    begin_claim(a, RD_SCRIPT_ACQUIRE_ANY, 3);
    rd_request_word(&a->request, a->known ? "again" : "");
    rd_request_bytes(&a->request, a->others.data, a->others.len);
    rd_request_bytes(&a->request, ends, (size_t)(at - ends));
}

void rd_ask_build(struct rd_attempt *a)
{
    rd_request_clear(&a->request);
    if (a->count == 1)
        build_one(a);
    else
        build_any(a);
}

void rd_ask_build_leave(void *data, struct rd_request *request)
{
    const struct rd_attempt *a = data;

    begin(a, request, RD_SCRIPT_LEAVE, 2 + a->count);
    rd_request_word(request, a->met.id);
    rd_request_word(request, a->claims->detached ? a->flags : "");
    add_owners(a, request);
}

void rd_ask_build_sleep(const struct rd_attempt *a, int64_t sleep_for_ms,
                        struct rd_request *request)
{
    char wake[RD_SIDE_MAX];
    char seconds[32];

    (void)snprintf(seconds, sizeof seconds, "%lld.%03lld", (long long)(sleep_for_ms / 1000),
                   (long long)(sleep_for_ms % 1000));
    if (a->count == 1)
        rd_keys_wake(wake, &a->keys, a->claims->owner);
    else
        rd_keys_wake_party(wake, a->claims->owner);
    rd_request_begin(request, 3);
    rd_request_word(request, "BLPOP");
    rd_request_word(request, wake);
    rd_request_word(request, seconds);
}

/* {'busy', ask again in ms, pttl, token, label, kind}: who holds it. */
static enum hf_status busy(struct rd_attempt *a, const struct rd_answer *answer,
                           struct hf_error *err)
{
    const struct rd_reply *reply = answer->reply;
    const char *kind = rd_reply_text(rd_reply_at(reply, 5));
    int64_t left_ms = rd_reply_number(rd_reply_at(reply, 2), -1);
    const char *name = a->claims[a->which].name;
    const char *shown = a->store->setup.url.parts.shown;
    char label[HF_LABEL_MAX + 1];
    char left[32] = "unknown time";

    hf__copy_printable(label, sizeof label, rd_reply_text(rd_reply_at(reply, 4)));
    a->node = answer->node;
    a->wait_queue.ours_until_ns = hf__time_add(answer->sent_at_ns, QUEUE_MS * HF__NS_PER_MS);
    a->again_ns = hf__time_add(a->store->base.host->now_ns(),
                               rd_reply_number(rd_reply_at(reply, 1), 1000) * HF__NS_PER_MS);
    if (left_ms >= 0)
        (void)hf__format_duration(left, sizeof left, left_ms);
    if (strcmp(kind, "ours") == 0)
        return hf__fail_lock(err, HF_BUSY, name, shown,
                             " is held by %.60s (token %s), for another %s", label,
                             rd_reply_text(rd_reply_at(reply, 3)), left);
    if (strcmp(kind, "waiter") == 0)
        return hf__fail_lock(err, HF_BUSY, name, shown,
                             " is just being handed to the next in the queue");
    return hf__fail_lock(err, HF_BUSY, name, shown,
                         " is held by a client that is not holdfast, for another %s", left);
}

/* The script counts from 1. */
static bool find_which(struct rd_attempt *a, const struct rd_reply *number)
{
    int64_t which = rd_reply_number(number, 0);

    if (which < 1 || (size_t)which > a->count)
        return false;
    a->which = (size_t)which - 1;
    return true;
}

/* Somebody sent the claim a second time. What the first one was granted is not ours to give
 * back. */
static enum hf_status twice(struct rd_attempt *a, const struct rd_reply *reply,
                            struct hf_error *err)
{
    if (a->count > 1)
        (void)find_which(a, rd_reply_at(reply, 2));
    a->twice = true;
    a->known = a->known && a->claims->detached; /* its flags tell the two apart */
    return hf__fail_lock(err, HF_BUSY, a->claims[a->which].name, a->store->setup.url.parts.shown,
                         " is held by this very attempt: the request came twice");
}

static enum hf_status granted(struct rd_attempt *a, const struct rd_answer *answer,
                              const char *text, struct hf_grant *grant, struct hf_error *err)
{
    uint64_t token;

    if (!hf__parse_u64(text, &token) || token == 0 || token > INT64_MAX)
        return rd_nonsense(&a->store->setup.url, a->claims[a->which].name, err);
    grant->token = token;
    grant->sent_at_ns = answer->sent_at_ns;
    rd_vouch(a->store, a->claims[a->which].owner, token, a->claims[a->which].ttl_ms);
    return HF_OK;
}

static enum hf_status corrupt(struct rd_attempt *a, const struct rd_reply *reply,
                              struct hf_error *err)
{
    const struct rd_url *url = &a->store->setup.url;
    struct rd_keys keys;
    enum hf_status status;

    if (a->count > 1)
        (void)find_which(a, rd_reply_at(reply, 2));
    status = rd_claim_keys(url, a->claims[a->which].name, &keys, err);
    return status == HF_OK ? rd_corrupt(url, a->claims[a->which].name, &keys, reply, err) : status;
}

enum hf_status rd_ask_judge(struct rd_attempt *a, const struct rd_answer *answer,
                            struct hf_grant *grant, struct hf_error *err)
{
    const struct rd_reply *reply = answer->reply;

    a->which = 0;
    if (reply->type == RD_REPLY_STRING)
        return granted(a, answer, reply->text, grant, err);
    if (rd_reply_is(reply, "granted") && find_which(a, rd_reply_at(reply, 1)))
        return granted(a, answer, rd_reply_text(rd_reply_at(reply, 2)), grant, err);
    if (rd_reply_is(reply, "busy")) {
        a->known = rd_attempt_waits(a);
        return busy(a, answer, err);
    }
    if (rd_reply_is(reply, "new")) {
        rd_incarnation_forget(answer->node, a->met.id);
        a->meet = answer->node;
        return HF_OK;
    }
    if (rd_reply_is(reply, "unmet")) {
        a->unmet = true;
        a->meet = answer->node;
        return HF_OK;
    }
    if (rd_reply_is(reply, "twice"))
        return twice(a, reply, err);
    if (rd_reply_is(reply, "corrupt"))
        return corrupt(a, reply, err);
    return rd_nonsense(&a->store->setup.url, a->claims[a->which].name, err);
}
