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
        bool is_counter;

        if (rd_keys_name(name, prefix, rd_reply_text(rd_reply_at(keys, i)), &is_counter) &&
            is_counter && strncmp(name, start, strlen(start)) == 0 && !add_name(names, name))
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

/* A grant or a renewal makes the key last its ttl: what is gone of that is how long ago it was. */
static void take_renewal(struct rl_holder *word, int64_t ttl_ms)
{
    word->renewed_ago_ms = -1;
    if (ttl_ms <= 0 || ttl_ms > HF_TTL_MAX_MS || word->remaining_ms < 0)
        return;
    word->ttl_ms = (uint32_t)ttl_ms;
    if (word->remaining_ms <= ttl_ms)
        word->renewed_ago_ms = ttl_ms - word->remaining_ms;
}

/* {owner, pttl, counter, flags, label, clock, foreign, ttl}, and of a broken hold {..., at, who,
 * why} */
static void take_word(struct rl_holder *word, const struct rd_reply *reply)
{
    int64_t clock_us = rd_reply_number(rd_reply_at(reply, 5), 0);

    memset(word, 0, sizeof *word);
    hf__copy_printable(word->owner, sizeof word->owner, rd_reply_text(rd_reply_at(reply, 0)));
    word->remaining_ms = rd_reply_number(rd_reply_at(reply, 1), -1);
    word->token = (uint64_t)rd_reply_number(rd_reply_at(reply, 2), 0);
    word->age_ms = (clock_us - (int64_t)word->token) / 1000;
    word->detached = strchr(rd_reply_text(rd_reply_at(reply, 3)), 'd') != NULL;
    hf__copy_printable(word->label, sizeof word->label, rd_reply_text(rd_reply_at(reply, 4)));
    hf__copy_printable(word->foreign, sizeof word->foreign, rd_reply_text(rd_reply_at(reply, 6)));
    take_renewal(word, rd_reply_number(rd_reply_at(reply, 7), 0));
    word->broken = reply->len > 8;
    if (word->broken)
        rd_revocation_take(reply, 8, &word->revocation);
}

/* How many of the words name that one's holder; *broken: how many of these call it broken. */
static unsigned votes_for(const struct rl_holder *one, const struct rl_holder *words,
                          unsigned count, unsigned *broken)
{
    unsigned votes = 0;

    *broken = 0;
    for (unsigned i = 0; i < count && one->owner[0] != '\0'; i++)
        if (strcmp(one->owner, words[i].owner) == 0) {
            votes++;
            *broken += words[i].broken;
        }
    return votes;
}

/* The last renewal that one of the holder's nodes tells of. A renewal that went through reached a
 * majority, so that in every other majority there is one that heard of it. */
static void find_renewal(const struct rl_holder *words, unsigned count, struct rl_holder *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(words[i].owner, out->owner) != 0 || words[i].renewed_ago_ms < 0 ||
            (out->renewed_ago_ms >= 0 && out->renewed_ago_ms <= words[i].renewed_ago_ms))
            continue;
        out->renewed_ago_ms = words[i].renewed_ago_ms;
        out->ttl_ms = words[i].ttl_ms;
    }
}

/* The one who has a majority, if there is one. Its token is the highest that one of its nodes knows
 * it by: the others may not have raised their counter yet, none can be above. Broken is what a
 * majority calls so. */
static bool find_holder(const struct rl_store *store, const struct rl_holder *words, unsigned count,
                        struct rl_holder *out)
{
    unsigned majority = hf__quorum_majority(store->count);
    unsigned broken = 0;
    unsigned first = 0;

    while (first < count && votes_for(&words[first], words, count, &broken) < majority)
        first++;
    if (first == count)
        return false;
    *out = words[first];
    for (unsigned i = first + 1; i < count; i++) {
        int64_t least_ms =
            words[i].remaining_ms < out->remaining_ms ? words[i].remaining_ms : out->remaining_ms;

        if (strcmp(words[i].owner, out->owner) != 0)
            continue;
        if (words[i].token >= out->token) {
            bool known = out->broken;
            struct hf_revocation revocation = out->revocation;

            *out = words[i];
            if (known && !out->broken)
                out->revocation = revocation;
        } else if (words[i].broken && !out->broken) {
            out->revocation = words[i].revocation;
        }
        out->remaining_ms = least_ms;
    }
    out->broken = broken >= majority;
    find_renewal(words, count, out);
    return true;
}

static bool show(const struct listing *l, const char *name, const struct rl_holder *holder)
{
    const struct hf_lock_info info = {
        .size = sizeof info,
        .name = name,
        .label = holder->label,
        .token = holder->token,
        .remaining_ms = holder->remaining_ms,
        .age_ms = holder->age_ms > 0 ? holder->age_ms : 0,
        .held = true,
        .detached = holder->detached,
        .foreign = holder->label[0] == '\0',
        .revocation = holder->broken ? &holder->revocation : NULL,
        .renewed_ms = holder->renewed_ago_ms >= 0
                          ? l->store->base.host->wall_us() / 1000 - holder->renewed_ago_ms
                          : 0,
        .ttl_ms = holder->ttl_ms,
        .endless = holder->remaining_ms == -1,
    };

    return l->fn(&info, l->data);
}

/* Whether the nodes that have not answered cannot change who has a majority, nor whether it was
 * broken. */
static bool settled(const struct rl_store *store, const struct rl_holder *words, unsigned count)
{
    unsigned majority = hf__quorum_majority(store->count);
    unsigned to_come = store->count - count;
    unsigned most = 0, most_broken = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned broken;
        unsigned votes = votes_for(&words[i], words, count, &broken);

        if (votes > most) {
            most = votes;
            most_broken = broken;
        }
    }
    if (most_broken > 0 && most_broken < majority && most_broken + to_come >= majority)
        return false;
    return most >= majority || most + to_come < majority;
}

static void ask_node(struct rl_round *round, unsigned index, const struct rd_keys *keys)
{
    rd_script_begin(&round->request, RD_SCRIPT_REDLOCK_LIST, keys, 0);
    (void)rl_round_send(round, index);
}

enum hf_status rl_find_holder(struct rl_store *store, const char *name, int64_t deadline_ns,
                              struct rl_holder *out, struct hf_error *err)
{
    struct rl_holder words[HF__QUORUM_NODES_MAX];
    struct rl_round round;
    struct rd_keys keys;
    struct rd_reply *reply;
    unsigned index, count = 0;
    enum rl_event event;
    enum hf_status status = rd_claim_keys(&store->setup.url, name, &keys, err);

    out->owner[0] = '\0';
    if (status != HF_OK)
        return status;
    rl_round_begin(&round, store, false);
    for (unsigned i = 0; i < store->count; i++)
        if (round.joined[i])
            ask_node(&round, i, &keys);
    deadline_ns = rl_round_deadline(&round, deadline_ns);
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
        status = rl_too_few(store, name, &round.troubles, err);
    else if (!find_holder(store, words, count, out))
        out->owner[0] = '\0';
    explicit_bzero(words, sizeof words);
    return status == HF_OK ? hf__ok(err) : status;
}

/* Asks all nodes about one lock, and shows it. */
static enum hf_status inspect(struct listing *l, const char *name, struct hf_error *err)
{
    struct rl_holder holder;
    enum hf_status status = rl_find_holder(l->store, name, l->query->deadline_ns, &holder, err);

    if (status == HF_OK && holder.owner[0] != '\0')
        l->stopped = !show(l, name, &holder);
    return status;
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
