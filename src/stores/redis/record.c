/* record.c - what holders leave behind: scripts to write, to read, and for a page of a list.
 *
 * A record is as durable as its server. Where there is a replica, a write is followed by a WAIT on
 * the same way, and what neither a replica nor a file has confirmed is told by a warning. */
#include "stores/redis/redis.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 1000 }; /* for a replica to confirm a write */

static struct rd_call record_call(struct rd_store *store, const char *name,
                                  const struct rd_keys *keys, int64_t deadline_ns,
                                  const struct rd_request *request)
{
    return (struct rd_call){.lock = name,
                            .slot = rd_route_slot(store, keys),
                            .urgent = true,
                            .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                            .request = request};
}

/* Whether the server that will be asked had replicas when we last heard of it. */
static bool has_replicas(struct rd_store *store, const struct rd_call *call)
{
    struct rd_node *node;
    bool any = false;

    if (rd_route(store, call->slot, &call->patience, &node, NULL) == HF_OK) {
        pthread_mutex_lock(&node->lock);
        any = node->replicas > 0;
        pthread_mutex_unlock(&node->lock);
    }
    return any;
}

/* "holdfast:{KEY}:r", beside the token counter's "holdfast:{KEY}:t". */
static void records_key(char out[RD_SIDE_MAX], const struct rd_keys *keys)
{
    (void)snprintf(out, RD_SIDE_MAX, "%.*sr", (int)strlen(keys->counter) - 1, keys->counter);
}

static void build_put(struct rd_request *out, const struct hf_record_write *write,
                      const struct rd_keys *keys)
{
    char records[RD_SIDE_MAX];

    records_key(records, keys);
    rd_request_begin(out, 3 + 3 + 6);
    rd_request_word(out, "EVALSHA");
    rd_request_word(out, rd_scripts[RD_SCRIPT_RECORD_PUT].sha1);
    rd_request_word(out, "3");
    rd_request_word(out, keys->lock);
    rd_request_word(out, keys->counter);
    rd_request_word(out, records);
    rd_request_word(out, write->owner);
    rd_request_number(out, (int64_t)write->token);
    rd_request_number(out, (int64_t)write->number);
    rd_request_word(out, write->key);
    rd_request_number(out, write->keep_ms);
    rd_request_bytes(out, write->value, write->value_len);
}

/* "WAIT 1 ms". Half of the time that is left is for the answer to arrive. */
static void build_wait(struct rd_request *out, int64_t left_ns)
{
    int64_t half_ms = left_ns / 2 / HF__NS_PER_MS;

    rd_request_begin(out, 3);
    rd_request_word(out, "WAIT");
    rd_request_word(out, "1");
    rd_request_number(out, half_ms < 1 ? 1 : half_ms < WAIT_MS ? half_ms : WAIT_MS);
}

/* {'ok', replicas, aof}: it is on record. What may still undo that is a warning. */
static enum hf_status written(struct rd_store *store, const char *name,
                              const struct rd_answer *answer, struct hf_error *err)
{
    const char *shown = store->setup.url.parts.shown;
    int64_t replicas = rd_reply_number(rd_reply_at(answer->reply, 1), 0);

    pthread_mutex_lock(&answer->node->lock);
    answer->node->replicas = replicas;
    pthread_mutex_unlock(&answer->node->lock);
    if (strcmp(rd_reply_text(rd_reply_at(answer->reply, 2)), "1") != 0)
        return hf__fail_lock(err, HF_OK, name, shown,
                             ": its records are lost if Redis stops: appendonly is off, and only "
                             "what the last snapshot has would come back");
    if (replicas > 0 && answer->second != NULL && answer->second->type == RD_REPLY_ERROR)
        return hf__fail_lock(err, HF_OK, name, shown,
                             ": its record is written, but no replica was waited for: the user "
                             "lacks the ACL rule +wait");
    if (replicas > 0 && answer->second != NULL && rd_reply_number(answer->second, 0) < 1)
        return hf__fail_lock(err, HF_OK, name, shown,
                             ": its record is written, but no replica has confirmed it; a "
                             "failover now would lose it");
    return hf__ok(err);
}

static enum hf_status damaged(const struct rd_store *store, const char *name, const char *key,
                              struct hf_error *err)
{
    char shown[HF_RECORD_KEY_MAX + 1];

    hf__copy_printable(shown, sizeof shown, key);
    return hf__fail_lock(err, HF_CORRUPT, name, store->setup.url.parts.shown,
                         ": its record \"%s\" is damaged; holdfast-redis(7) says how to remove it",
                         shown);
}

static enum hf_status judge_put(struct rd_store *store, const struct hf_record_write *write,
                                const struct rd_answer *answer, struct hf_error *err)
{
    if (rd_reply_is(answer->reply, "ok"))
        return written(store, write->name, answer, err);
    if (rd_reply_is(answer->reply, "stale"))
        return hf__fail_old_record(err, write->name, store->setup.url.parts.shown, write->key);
    if (rd_reply_is(answer->reply, "corrupt"))
        return damaged(store, write->name, write->key, err);
    return rd_lost(&store->setup.url, write->name, answer->reply, NULL, err);
}

enum hf_status rd_record_put(struct hf_store_base *base, const struct hf_record_write *write,
                             struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_answer answer;
    struct rd_call call;
    struct rd_keys keys;
    enum hf_status status = rd_claim_keys(&store->setup.url, write->name, &keys, err);

    if (status != HF_OK)
        return status;
    call = record_call(store, write->name, &keys, write->deadline_ns, &request);
    build_put(&request, write, &keys);
    call.two = has_replicas(store, &call);
    if (call.two)
        build_wait(&request, write->deadline_ns - base->host->now_ns());
    status = rd_call(store, &call, &answer, NULL, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    status = judge_put(store, write, &answer, err);
    rd_answer_release(&answer);
    return status;
}

/* The next of the numbers that a record begins with, and the space behind it. */
static bool take_number(const char **at, int64_t *out)
{
    const char *c = *at;
    uint64_t number = 0;

    for (; *c >= '0' && *c <= '9' && c - *at < 19; c++)
        number = 10 * number + (uint64_t)(*c - '0');
    if (c == *at || *c != ' ' || number > INT64_MAX)
        return false;
    *out = (int64_t)number;
    *at = c + 1;
    return true;
}

/* "token number written until value" */
static bool parse(const char *key, const struct rd_reply *reply, struct hf_record *out)
{
    const char *at = rd_reply_text(reply);
    int64_t token, number;

    *out = (struct hf_record){.size = sizeof *out, .key = key};
    if (!take_number(&at, &token) || !take_number(&at, &number) ||
        !take_number(&at, &out->written_ms) || !take_number(&at, &out->until_ms))
        return false;
    out->token = (uint64_t)token;
    out->number = (uint64_t)number;
    out->value = at;
    out->value_len = reply->len - (size_t)(at - reply->text);
    return out->value_len <= HF_RECORD_VALUE_MAX;
}

static bool is_kept(const struct hf_record *record, int64_t now_ms)
{
    return record->until_ms == 0 || record->until_ms > now_ms;
}

/* Begins a request to a script that reads; arg_count words have to follow. */
static void begin_read(struct rd_request *out, enum rd_script_id id, const struct rd_keys *keys,
                       size_t arg_count)
{
    char records[RD_SIDE_MAX];

    records_key(records, keys);
    rd_request_begin(out, 3 + 1 + arg_count);
    rd_request_word(out, "EVALSHA");
    rd_request_word(out, rd_scripts[id].sha1);
    rd_request_word(out, "1");
    rd_request_word(out, records);
}

/* Asks it. HF_OK: *now_ms is the server's clock, the caller releases *answer. */
static enum hf_status ask(struct rd_store *store, const struct rd_call *call,
                          struct rd_answer *answer, int64_t *now_ms, struct hf_error *err)
{
    enum hf_status status = rd_call(store, call, answer, NULL, err);

    if (status != HF_OK)
        return status == HF_UNKNOWN ? HF_UNREACHABLE : status;
    *now_ms = rd_reply_number(rd_reply_at(answer->reply, 0), -1);
    if (*now_ms >= 0)
        return HF_OK;
    rd_answer_release(answer);
    return rd_nonsense(&store->setup.url, call->lock, err);
}

enum hf_status rd_record_get(struct hf_store_base *base, const struct hf_record_query *query,
                             hf_record_fn *fn, void *data, int64_t *now_ms, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct rd_request request = {0};
    struct rd_answer answer;
    struct rd_keys keys;
    struct rd_call call;
    struct hf_record record;
    int64_t clock_ms;
    enum hf_status status = rd_claim_keys(&store->setup.url, query->name, &keys, err);

    if (status != HF_OK)
        return status;
    call = record_call(store, query->name, &keys, query->deadline_ns, &request);
    begin_read(&request, RD_SCRIPT_RECORD_GET, &keys, 1);
    rd_request_word(&request, query->key);
    status = ask(store, &call, &answer, &clock_ms, err);
    rd_request_release(&request);
    if (status != HF_OK)
        return status;
    if (now_ms != NULL)
        *now_ms = clock_ms;
    status = hf__ok(err);
    if (rd_reply_at(answer.reply, 1)->type != RD_REPLY_NIL) {
        if (!parse(query->key, rd_reply_at(answer.reply, 1), &record))
            status = damaged(store, query->name, query->key, err);
        else if (is_kept(&record, clock_ms))
            (void)fn(&record, data);
    }
    rd_answer_release(&answer);
    return status;
}

/* A listing under way. */
struct listing {
    struct rd_store *store;
    const struct hf_record_query *query;
    hf_record_fn *fn;
    void *data;
    char after[HF_RECORD_KEY_MAX + 1]; /* where the last page ended; "" after the last one */
    bool stopped;
    struct hf_error bad; /* of a record that is damaged: the others are shown all the same */
};

/* {clock, where it ended, key, record, key, record, ...} */
static enum hf_status show_page(struct listing *l, const struct rd_reply *page, int64_t now_ms,
                                struct hf_error *err)
{
    const char *end = rd_reply_text(rd_reply_at(page, 1));

    if (strlen(end) >= sizeof l->after)
        return rd_nonsense(&l->store->setup.url, l->query->name, err);
    memcpy(l->after, end, strlen(end) + 1);
    for (size_t i = 2; i + 1 < page->len && !l->stopped; i += 2) {
        const char *key = rd_reply_text(rd_reply_at(page, i));
        struct hf_record record;

        if (strlen(key) > HF_RECORD_KEY_MAX || !parse(key, rd_reply_at(page, i + 1), &record))
            (void)damaged(l->store, l->query->name, key, &l->bad);
        else if (is_kept(&record, now_ms))
            l->stopped = !l->fn(&record, l->data);
    }
    return HF_OK;
}

enum hf_status rd_record_list(struct hf_store_base *base, const struct hf_record_query *query,
                              hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct rd_store *store = (struct rd_store *)base;
    struct listing l = {.store = store, .query = query, .fn = fn, .data = data};
    struct rd_request request = {0};
    struct rd_keys keys;
    struct rd_call call;
    enum hf_status status = rd_claim_keys(&store->setup.url, query->name, &keys, err);

    if (status != HF_OK)
        return status;
    call = record_call(store, query->name, &keys, query->deadline_ns, &request);
    do {
        struct rd_answer answer;
        int64_t now_ms;

        rd_request_clear(&request);
        begin_read(&request, RD_SCRIPT_RECORD_LIST, &keys, 2);
        rd_request_word(&request, query->key);
        rd_request_word(&request, l.after);
        status = ask(store, &call, &answer, &now_ms, err);
        if (status == HF_OK) {
            status = show_page(&l, answer.reply, now_ms, err);
            rd_answer_release(&answer);
        }
    } while (status == HF_OK && !l.stopped && l.after[0] != '\0');
    rd_request_release(&request);
    return status == HF_OK ? rd_pass(err, &l.bad) : status;
}
