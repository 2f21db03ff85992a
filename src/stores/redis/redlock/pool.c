/* pool.c - the links to one node that wait for the next caller.
 *
 * A link that owes answers may be used: a node that is slower than the majority owes most of the
 * time. One that has been silent for as long as a round waits may be dead without anybody knowing.
 * It is set aside: nothing is sent on it until something arrives again, and a new one is begun
 * meanwhile. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"

#define TRUST_NS (10 * HF__NS_PER_MS) /* a link used so lately is not checked again */

enum health { SOUND, SILENT, USELESS };

static int64_t now_of(const struct rl_store *store)
{
    return store->base.host->now_ns();
}

/* How long it has said nothing although it owes something. */
static int64_t silence_ns(const struct rl_link *link, int64_t now_ns)
{
    int64_t since_ns = link->heard_ns > link->asked_ns ? link->heard_ns : link->asked_ns;

    return link->owed > 0 ? now_ns - since_ns : 0;
}

/* Reads what is owed, as far as it is there. */
static enum health check(const struct rl_store *store, struct rl_link *link, int64_t now_ns)
{
    struct rd_reply *reply;
    int64_t quiet_ns;

    if (link->owed > RL_OWED_MAX)
        return USELESS;
    if (link->state != RL_READY || now_ns - link->used_ns < TRUST_NS)
        return SOUND;
    if (!rl_link_glance(link, &reply))
        return USELESS;
    rd_reply_free(reply);
    if (reply != NULL)
        return USELESS; /* an answer to nothing */
    quiet_ns = silence_ns(link, now_ns);
    if (quiet_ns >= RD_UNHEARD_MS * HF__NS_PER_MS)
        return USELESS;
    return quiet_ns >= store->timeout_ms * HF__NS_PER_MS ? SILENT : SOUND;
}

static struct rl_link *pop(struct rl_node *node, struct rl_link **list)
{
    struct rl_link *link;

    pthread_mutex_lock(&node->lock);
    link = *list;
    if (link != NULL) {
        *list = link->next;
        node->idle_count -= list != &node->coming;
    }
    pthread_mutex_unlock(&node->lock);
    return link;
}

static void push(struct rl_node *node, struct rl_link **list, struct rl_link *link)
{
    pthread_mutex_lock(&node->lock);
    link->next = *list;
    *list = link;
    node->idle_count++;
    pthread_mutex_unlock(&node->lock);
}

/* The idle links that were heard last before the time, and owe nothing. Node's lock held. */
static struct rl_link *pick_older(struct rl_node *node, int64_t than_ns)
{
    struct rl_link **at = &node->idle;
    struct rl_link *older = NULL;

    while (*at != NULL) {
        struct rl_link *link = *at;

        if (link->heard_ns >= than_ns || link->owed > 0) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link->next = older;
        older = link;
        node->idle_count--;
    }
    return older;
}

/* What swallowed the requests on this link may have swallowed every link from before. */
static void set_aside(struct rl_store *store, unsigned index, struct rl_link *link)
{
    struct rl_node *node = &store->node[index];
    struct rl_link *older;

    pthread_mutex_lock(&node->lock);
    older = pick_older(node, link->asked_ns);
    pthread_mutex_unlock(&node->lock);
    while (older != NULL) {
        struct rl_link *next = older->next;

        rl_link_drop(store, index, older);
        older = next;
    }
    push(node, &node->silent, link);
}

/* The first idle one that is of use, or NULL. */
static struct rl_link *take_idle(struct rl_store *store, unsigned index, int64_t now_ns)
{
    struct rl_node *node = &store->node[index];
    struct rl_link *link;

    while ((link = pop(node, &node->idle)) != NULL) {
        enum health health = check(store, link, now_ns);

        if (health == SOUND)
            return link;
        if (health == SILENT)
            set_aside(store, index, link);
        else
            rl_link_drop(store, index, link);
    }
    return NULL;
}

/* One that was silent and has spoken since, or NULL. */
static struct rl_link *take_woken(struct rl_store *store, unsigned index, int64_t now_ns)
{
    struct rl_node *node = &store->node[index];
    struct rl_link *still = NULL, *woken = NULL, *link;

    while (woken == NULL && (link = pop(node, &node->silent)) != NULL) {
        enum health health = check(store, link, now_ns);

        if (health == SOUND) {
            woken = link;
        } else if (health == SILENT) {
            link->next = still;
            still = link;
        } else {
            rl_link_drop(store, index, link);
        }
    }
    while (still != NULL) {
        link = still;
        still = link->next;
        push(node, &node->silent, link);
    }
    return woken;
}

struct rl_link *rl_link_take(struct rl_store *store, unsigned index, struct hf_error *err)
{
    struct rl_node *node = &store->node[index];
    int64_t now_ns = now_of(store);
    struct rl_link *link = take_idle(store, index, now_ns);
    bool too_soon;

    if (link == NULL)
        link = take_woken(store, index, now_ns);
    if (link == NULL)
        link = pop(node, &node->coming);
    if (link != NULL)
        return link;
    pthread_mutex_lock(&node->lock);
    too_soon = now_ns < node->backoff.not_before_ns;
    pthread_mutex_unlock(&node->lock);
    if (too_soon) {
        (void)rd_pool_fail(&node->node->pool, HF_UNREACHABLE,
                           "it could not be reached a moment ago", err);
        return NULL;
    }
    link = rl_link_begin(store, index);
    if (link == NULL)
        (void)hf__nomem(err);
    return link;
}

void rl_link_give(struct rl_store *store, unsigned index, struct rl_link *link)
{
    struct rl_node *node = &store->node[index];
    bool ready;

    if (link == NULL)
        return;
    link->used_ns = now_of(store);
    ready = link->state == RL_READY && !link->conn->broken;
    if (ready && silence_ns(link, link->used_ns) >= store->timeout_ms * HF__NS_PER_MS) {
        set_aside(store, index, link);
        return;
    }
    pthread_mutex_lock(&node->lock);
    if (ready && node->idle_count < RD_IDLE_MAX) {
        link->next = node->idle;
        node->idle = link;
        node->idle_count++;
        link = NULL;
    } else if (link->state != RL_READY && !link->conn->broken && node->coming == NULL) {
        node->coming = link;
        link->next = NULL;
        link = NULL;
    }
    pthread_mutex_unlock(&node->lock);
    rl_link_drop(store, index, link);
}
