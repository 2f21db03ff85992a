/* list.c - what a majority of the nodes says is held. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_MS   1000    /* what a page of keys may take at one node */
#define NAMES_MAX 1000000 /* locks in one listing */

/* The names that any node knows of. */
struct names {
    char **items;
    size_t count, capacity;
};

/* A listing under way. */
struct listing {
    struct rl_store *store;
    const struct hf_query *query;
    hf_list_fn *fn;
    void *data;
    bool stopped; /* fn wants no more */
};

/* What one node said. */
struct word {
    char owner[HF_OWNER_LEN + 1];
    int64_t left_ms;
    uint64_t token;
    int64_t age_ms;
    bool detached;
    char label[HF_LABEL_MAX + 1];
};

static bool add_name(struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity > 0 ? 2 * names->capacity : 64;
        char **items =
            capacity <= NAMES_MAX ? realloc(names->items, capacity * sizeof *items) : NULL;

        if (items == NULL)
            return false;
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = strdup(name);
    return names->items[names->count] != NULL && ++names->count > 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Picks the locks that a page of keys tells of. */
static bool add_page(struct names *names, const char *prefix, const char *start,
                     const struct rd_reply *keys)
{
    for (size_t i = 0; i < keys->len; i++) {
        char name[HF_NAME_MAX + 1];
        bool is_record;

        if (rd_keys_name(name, prefix, rd_reply_text(rd_reply_at(keys, i)), &is_record) &&
            is_record && strncmp(name, start, strlen(start)) == 0 && !add_name(names, name))
            return false;
    }
    return true;
}

static enum hf_status scan_node(struct rl_store *store, unsigned index,
                                const struct hf_query *query, struct names *names,
                                struct hf_error *err)
{
    char pattern[2 * RD_KEY_MAX + 32];
    char cursor[RD_CURSOR_MAX] = "0";
    enum hf_status status;

    rd_keys_pattern(pattern, sizeof pattern, store->setup.url.prefix, query->name);
    do {
        int64_t end_ns = store->base.host->now_ns() + PAGE_MS * HF__NS_PER_MS;
        struct hf__patience patience = {
            .deadline_ns = end_ns < query->deadline_ns ? end_ns : query->deadline_ns,
            .cancel_fd = -1};
        struct rd_reply *reply;

        status = rd_scan(store->node[index].node, pattern, cursor, &patience, &reply, err);
        if (status != HF_OK)
            return status;
        if (!add_page(names, store->setup.url.prefix, query->name, rd_reply_at(reply, 1)))
            status = hf__nomem(err);
        rd_reply_free(reply);
    } while (status == HF_OK && strcmp(cursor, "0") != 0);
    return status;
}

/* {owner, pttl, counter, flags, label, clock} */
static void take_word(struct word *word, const struct rd_reply *reply)
{
    int64_t clock_us = rd_reply_number(rd_reply_at(reply, 5), 0);

    memset(word, 0, sizeof *word);
    hf__copy_printable(word->owner, sizeof word->owner, rd_reply_text(rd_reply_at(reply, 0)));
    word->left_ms = rd_reply_number(rd_reply_at(reply, 1), -1);
    word->token = (uint64_t)rd_reply_number(rd_reply_at(reply, 2), 0);
    word->age_ms = (clock_us - (int64_t)word->token) / 1000;
    word->detached = strchr(rd_reply_text(rd_reply_at(reply, 3)), 'd') != NULL;
    hf__copy_printable(word->label, sizeof word->label, rd_reply_text(rd_reply_at(reply, 4)));
}

/* Shows the lock if one owner has a majority. Its token is the highest that one of its nodes knows
 * it by: the others may not have raised their counter yet, none can be above. */
static bool show(const struct listing *l, const char *name, const struct word *words,
                 unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct hf_lock_info info = {.size = sizeof info, .name = name, .held = true};
        unsigned votes = 0;

        for (unsigned j = 0; j < count; j++) {
            if (words[i].owner[0] == '\0' || strcmp(words[i].owner, words[j].owner) != 0)
                continue;
            votes++;
            if (words[j].token >= info.token) {
                info.token = words[j].token;
                info.label = words[j].label;
                info.detached = words[j].detached;
                info.age_ms = words[j].age_ms > 0 ? words[j].age_ms : 0;
            }
            if (votes == 1 || words[j].left_ms < info.remaining_ms)
                info.remaining_ms = words[j].left_ms;
        }
        info.foreign = info.label == NULL || info.label[0] == '\0';
        if (votes >= hf__quorum_majority(l->store->count))
            return l->fn(&info, l->data);
    }
    return true;
}

/* Whether the nodes that have not answered cannot change who has a majority. */
static bool settled(const struct rl_store *store, const struct word *words, unsigned count)
{
    unsigned majority = hf__quorum_majority(store->count);
    unsigned most = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned votes = 0;

        for (unsigned j = 0; j < count && words[i].owner[0] != '\0'; j++)
            votes += strcmp(words[i].owner, words[j].owner) == 0;
        if (votes > most)
            most = votes;
    }
    return most >= majority || most + store->count - count < majority;
}

static void ask_node(struct rl_round *round, unsigned index, const struct rd_keys *keys)
{
    rd_script_begin(&round->request, RD_SCRIPT_REDLOCK_LIST, keys, 0);
    (void)rl_round_send(round, index);
}

/* Asks all nodes about one lock, and shows it. */
static enum hf_status inspect(struct listing *l, const char *name, struct hf_error *err)
{
    struct rl_store *store = l->store;
    struct word words[HF__QUORUM_NODES_MAX];
    struct rl_round round;
    struct rd_keys keys;
    struct rd_reply *reply;
    unsigned index, count = 0;
    int64_t deadline_ns;
    enum rl_event event;
    enum hf_status status = rd_claim_keys(&store->setup.url, name, &keys, err);

    if (status != HF_OK)
        return status;
    rl_round_begin(&round, store, false);
    for (unsigned i = 0; i < store->count; i++)
        if (round.joined[i])
            ask_node(&round, i, &keys);
    deadline_ns = rl_round_deadline(&round, l->query->deadline_ns);
    while (!settled(store, words, count) &&
           (event = rl_round_next(&round, deadline_ns, &index, &reply)) != RL_SILENCE) {
        if (event == RL_JOINED || event == RL_AGAIN)
            ask_node(&round, index, &keys);
        if (event == RL_ANSWER && reply->type == RD_REPLY_ARRAY)
            take_word(&words[count++], reply);
        else if (event == RL_ANSWER)
            (void)rl_round_error(&round, index, name, reply);
        rd_reply_free(reply);
    }
    rl_round_end(&round, 0, NULL);
    if (count < hf__quorum_majority(store->count))
        return rl_too_few(store, name, &round.troubles, err);
    l->stopped = !show(l, name, words, count);
    return hf__ok(err);
}

/* What a majority of the nodes has to tell. */
static enum hf_status scan_nodes(struct listing *l, struct names *names, struct hf_error *err)
{
    struct rl_troubles troubles = {0};
    unsigned answered = 0;

    for (unsigned i = 0; i < l->store->count; i++) {
        struct hf_error one = {0};

        if (scan_node(l->store, i, l->query, names, &one) == HF_OK)
            answered++;
        else
            rl_trouble_add(&troubles, &one);
    }
    if (answered < hf__quorum_majority(l->store->count))
        return rl_too_few(l->store, NULL, &troubles, err);
    return HF_OK;
}

enum hf_status rl_list(struct hf_store_base *base, const struct hf_query *query, hf_list_fn *fn,
                       void *data, struct hf_error *err)
{
    struct listing l = {.store = (struct rl_store *)base, .query = query, .fn = fn, .data = data};
    struct names names = {0};
    struct hf_error bad = {0}, own;
    enum hf_status status;

    if (err == NULL)
        err = &own;
    if (query->exact)
        return inspect(&l, query->name, err);
    status = scan_nodes(&l, &names, err);
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, by_text);
    for (size_t i = 0; i < names.count && status == HF_OK && !l.stopped; i++) {
        if (i == 0 || strcmp(names.items[i], names.items[i - 1]) != 0)
            status = inspect(&l, names.items[i], err);
        if (status == HF_CORRUPT) {
            /* The others are shown all the same. */
            bad = *err;
            status = HF_OK;
        }
    }
    for (size_t i = 0; i < names.count; i++)
        free(names.items[i]);
    free(names.items);
    return status == HF_OK ? rd_pass(err, &bad) : status;
}
