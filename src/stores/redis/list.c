/* list.c - what is held, by whom, for how long, and who waits. */
#include "stores/redis/redis.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 200 /* keys that SCAN looks at per request */

/* A listing under way. */
struct listing {
    struct rd_store *store;
    const struct hf_query *query;
    struct hf__patience patience;
    int64_t hurry_ns; /* from then on no more pauses */
    hf_list_fn *fn;
    void *data;
    bool stopped;
    struct hf_error bad; /* of a lock that cannot be read: the others are shown all the same */
    uint64_t *seen; /* hashes of names: SCAN may show a key twice. Open addressing, 0 is free */
    size_t seen_count;
    size_t seen_size;
};

enum { WORDS = 9 }; /* that there are to say of a lock */

static enum hf_status list_page(struct listing *l, struct rd_node *node,
                                const struct rd_reply *keys, struct hf_error *err);

/* {held, pttl, token, age, flags, label, waiters, kind, ttl}, and of a broken hold {..., at, who,
 * why} */
static void show(struct listing *l, const char *name, const struct rd_reply *reply)
{
    const char *kind = rd_reply_text(rd_reply_at(reply, 7));
    bool broken = reply->len > WORDS;
    struct hf_revocation revocation = {.at_ms = 0};
    char label[HF_LABEL_MAX + 1];
    struct hf_lock_info info = {
        .size = sizeof info,
        .name = name,
        .label = label,
        .token = (uint64_t)rd_reply_number(rd_reply_at(reply, 2), 0),
        .remaining_ms = rd_reply_number(rd_reply_at(reply, 1), -1),
        .age_ms = rd_reply_number(rd_reply_at(reply, 3), -1),
        .waiters = (uint64_t)rd_reply_number(rd_reply_at(reply, 6), 0),
        .held = rd_reply_number(rd_reply_at(reply, 0), 0) == 1,
        .detached = strchr(rd_reply_text(rd_reply_at(reply, 4)), 'd') != NULL,
        .foreign = strcmp(kind, "foreign") == 0,
        .revocation = broken ? &revocation : NULL,
        .ttl_ms = (uint32_t)rd_reply_number(rd_reply_at(reply, 8), 0),
    };

    info.endless = info.held && info.remaining_ms == -1;
    if (info.held && info.ttl_ms > 0 && info.remaining_ms <= info.ttl_ms)
        info.renewed_ms = l->store->base.host->wall_us() / 1000 - (info.ttl_ms - info.remaining_ms);

    if (broken)
        rd_revocation_take(reply, WORDS, &revocation);
    hf__copy_printable(label, sizeof label, rd_reply_text(rd_reply_at(reply, 5)));
    if ((info.held || info.waiters > 0) && !l->fn(&info, l->data))
        l->stopped = true;
}

/* An answer that makes no sense says nothing: not that the lock is free, either. */
static enum hf_status hear(struct listing *l, const char *name, const struct rd_reply *reply,
                           struct hf_error *err)
{
    if (reply->type != RD_REPLY_ARRAY || reply->len < WORDS)
        return rd_nonsense(&l->store->setup.url, name, err);
    show(l, name, reply);
    return hf__ok(err);
}

static enum hf_status list_one(struct listing *l, struct hf_error *err)
{
    struct rd_request request = {0};
    struct rd_call call = {
        .lock = l->query->name, .urgent = true, .patience = l->patience, .request = &request};
    struct rd_answer answer;
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&l->store->setup.url, l->query->name, &keys, err);

    if (status != HF_OK)
        return status;
    call.slot = rd_route_slot(l->store, &keys);
    rd_script_begin(&request, RD_SCRIPT_LIST, &keys, 0);
    status = rd_call(l->store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
    status = hear(l, l->query->name, answer.reply, err);
    rd_answer_release(&answer);
    return status;
}

enum hf_status rd_scan(struct rd_node *node, const char *pattern, char cursor[RD_CURSOR_MAX],
                       const struct hf__patience *patience, struct rd_reply **reply,
                       struct hf_error *err)
{
    struct rd_request request = {0};
    enum hf_status status;
    const char *next;

    rd_request_begin(&request, 6);
    rd_request_word(&request, "SCAN");
    rd_request_word(&request, cursor);
    rd_request_word(&request, "MATCH");
    rd_request_word(&request, pattern);
    rd_request_word(&request, "COUNT");
    rd_request_number(&request, PAGE);
    status = rd_pool_ask(&node->pool, &request, 1, patience, reply, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    next = rd_reply_text(rd_reply_at(*reply, 0));
    if ((*reply)->type == RD_REPLY_ERROR)
        status = rd_verdict_fail((*reply)->text, NULL, node->pool.setup->url.parts.shown, err);
    else if (rd_reply_at(*reply, 1)->type != RD_REPLY_ARRAY || next[0] == '\0' ||
             next[strspn(next, "0123456789")] != '\0' || strlen(next) >= RD_CURSOR_MAX)
        status = rd_pool_fail(&node->pool, HF_CORRUPT,
                              "its answer to SCAN makes no sense; is it Redis?", err);
    if (status != HF_OK) {
        rd_reply_free(*reply);
        return status;
    }
    memcpy(cursor, next, strlen(next) + 1);
    return HF_OK;
}

/* A server walks over all its keys for us. So that others have it at least half of the time, we
 * pause for as long as a step took; once half of our own time is over, getting done comes first. */
static void leave_room(const struct listing *l, int64_t step_ns)
{
    int64_t now_ns = l->store->base.host->now_ns();

    if (now_ns + step_ns < l->hurry_ns)
        (void)hf__patience_pause(&l->patience, now_ns + step_ns);
}

static enum hf_status list_node(struct listing *l, struct rd_node *node, struct hf_error *err)
{
    const struct hf_host *host = l->store->base.host;
    char pattern[2 * RD_KEY_MAX + 32];
    char cursor[RD_CURSOR_MAX] = "0";
    enum hf_status status;

    rd_keys_pattern(pattern, sizeof pattern, l->store->setup.url.prefix, l->query->name);
    do {
        struct rd_reply *reply;
        int64_t start_ns = host->now_ns();

        status = rd_scan(node, pattern, cursor, &l->patience, &reply, err);
        if (status != HF_OK)
            return status;
        status = list_page(l, node, rd_reply_at(reply, 1), err);
        rd_reply_free(reply);
        leave_room(l, host->now_ns() - start_ns);
    } while (status == HF_OK && !l->stopped && strcmp(cursor, "0") != 0);
    return status;
}

enum hf_status rd_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct listing l = {.store = (struct rd_store *)base,
                        .query = query,
                        .patience = {.deadline_ns = query->deadline_ns, .cancel_fd = -1},
                        .fn = fn,
                        .data = data};
    struct rd_node *nodes[RD_NODES_MAX];
    enum hf_status status;
    size_t count;

    if (query->exact)
        return list_one(&l, err);
    l.hurry_ns = base->host->now_ns();
    l.hurry_ns += (query->deadline_ns - l.hurry_ns) / 2;
    status = rd_route_all(l.store, &l.patience, nodes, &count, err);
    for (size_t i = 0; i < count && status == HF_OK && !l.stopped; i++) {
        status = list_node(&l, nodes[i], err);
        if (status == HF_UNREACHABLE)
            rd_route_forget(l.store, nodes[i]);
    }
    free(l.seen);
    return status == HF_OK ? rd_pass(err, &l.bad) : status;
}

static bool grow_seen(struct listing *l)
{
    size_t size = l->seen_size > 0 ? 2 * l->seen_size : 1024;
    uint64_t *seen = calloc(size, sizeof *seen);

    if (seen == NULL)
        return false;
    for (size_t i = 0; i < l->seen_size; i++) {
        size_t at = l->seen[i] & (size - 1);

        while (seen[at] != 0)
            at = (at + 1) & (size - 1);
        seen[at] = l->seen[i];
    }
    free(l->seen);
    l->seen = seen;
    l->seen_size = size;
    return true;
}

/* True the first time. Without memory a lock may be shown twice, which is better than not at all.
 */
static bool is_new(struct listing *l, const char *name)
{
    uint64_t hash = hf__hash64(name, strlen(name), 0) | 1;
    size_t at;

    if (2 * l->seen_count >= l->seen_size && !grow_seen(l))
        return true;
    at = hash & (l->seen_size - 1);
    while (l->seen[at] != 0 && l->seen[at] != hash)
        at = (at + 1) & (l->seen_size - 1);
    if (l->seen[at] == hash)
        return false;
    l->seen[at] = hash;
    l->seen_count++;
    return true;
}

/* Picks the locks that a page of keys tells of, and writes a request for each. */
static size_t pick(struct listing *l, const struct rd_reply *keys, struct rd_request *request,
                   char (*names)[HF_NAME_MAX + 1], size_t max)
{
    const char *start = l->query->name;
    size_t count = 0;

    for (size_t i = 0; i < keys->len && count < max; i++) {
        char *name = names[count];
        struct rd_keys lock;
        const char *why;
        bool is_counter;

        if (!rd_keys_name(name, l->store->setup.url.prefix, rd_reply_text(rd_reply_at(keys, i)),
                          &is_counter) ||
            strncmp(name, start, strlen(start)) != 0 ||
            !rd_keys_make(&lock, l->store->setup.url.prefix, name, &why) || !is_new(l, name))
            continue;
        rd_script_begin(request, RD_SCRIPT_LIST, &lock, 0);
        count++;
    }
    return count;
}

/* Asks about count locks at once; a second time if the server has forgotten the script. */
static enum hf_status ask_page(struct rd_node *node, const struct rd_request *request, size_t count,
                               const struct hf__patience *patience, struct rd_reply **replies,
                               struct hf_error *err)
{
    enum hf_status status = rd_pool_ask(&node->pool, request, count, patience, replies, err);
    const struct rd_reply *last = status == HF_OK ? replies[count - 1] : NULL;

    if (last == NULL || last->type != RD_REPLY_ERROR || rd_verdict(last->text) != RD_NOSCRIPT)
        return status;
    for (size_t i = 0; i < count; i++)
        rd_reply_free(replies[i]);
    status = rd_node_load(node, patience, err);
    return status == HF_OK ? rd_pool_ask(&node->pool, request, count, patience, replies, err)
                           : status;
}

/* What the server said of one lock. */
static enum hf_status take_word(struct listing *l, const char *name, const struct rd_reply *reply,
                                struct hf_error *err)
{
    struct hf_error one;
    enum hf_status status =
        reply->type == RD_REPLY_ERROR
            ? rd_verdict_fail(reply->text, name, l->store->setup.url.parts.shown, &one)
            : hear(l, name, reply, &one);

    if (status == HF_CORRUPT)
        l->bad = one;
    return status == HF_OK || status == HF_CORRUPT ? HF_OK : rd_pass(err, &one);
}

static enum hf_status list_page(struct listing *l, struct rd_node *node,
                                const struct rd_reply *keys, struct hf_error *err)
{
    size_t max = keys->len;
    struct rd_request request = {0};
    struct rd_reply **replies = calloc(max + 1, sizeof *replies);
    char(*names)[HF_NAME_MAX + 1] = calloc(max + 1, sizeof *names);
    enum hf_status status = HF_OK;
    size_t count = 0;

    if (replies == NULL || names == NULL) {
        status = hf__nomem(err);
        goto out;
    }
    count = pick(l, keys, &request, names, max);
    if (count == 0)
        goto out;
    status = ask_page(node, &request, count, &l->patience, replies, err);
    if (status != HF_OK)
        goto out;
    for (size_t i = 0; i < count; i++) {
        if (status == HF_OK && !l->stopped)
            status = take_word(l, names[i], replies[i], err);
        rd_reply_free(replies[i]);
    }
out:
    rd_request_release(&request);
    free(replies);
    free(names);
    return status;
}
