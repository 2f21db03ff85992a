/* link.c - one connection to a node, from nothing to ready. Nothing here waits: whoever has
 * a link on its way polls its descriptor beside those of the other nodes.
 *
 * A link may owe answers that nobody waits for any more: those of a node that was slower than the
 * majority. Requests and answers keep their order, so whoever takes the link next sends behind
 * them, and the answers owed are read past. */
#include "stores/redis/redlock/redlock.h"
#include "base/base.h"
#include "stores/redis/errors.h"

#include <stdlib.h>
#include <string.h>

#define SEND_MS 5   /* what a full socket may cost; requests are small */
#define COME_MS 100 /* what connecting may take at the least, and meeting likewise */

/* What is asked besides: INFO server, TIME. */
enum { IDENTITY_REPLIES = 2 };

static const enum rd_script_id scripts[] = {
    RD_SCRIPT_FORGET,        RD_SCRIPT_HANDSHAKE,        RD_SCRIPT_END_QUARANTINE,
    RD_SCRIPT_REDLOCK_GRANT, RD_SCRIPT_REDLOCK_IDENTITY, RD_SCRIPT_REDLOCK_LIST,
    RD_SCRIPT_REDLOCK_LOOK,  RD_SCRIPT_REDLOCK_RAISE,    RD_SCRIPT_REDLOCK_RELEASE,
    RD_SCRIPT_REDLOCK_RENEW, RD_SCRIPT_REDLOCK_REVOKE,
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

static int64_t now_of(const struct rl_store *store)
{
    return store->base.host->now_ns();
}

static void forget_replies(struct rl_link *link)
{
    for (unsigned i = 0; i < link->heard; i++)
        rd_reply_free(link->replies[i]);
    link->heard = link->expected = 0;
}

void rl_link_close(struct rl_link *link, bool forked)
{
    if (link == NULL)
        return;
    forget_replies(link);
    link->conn->shared = forked;
    rd_conn_close(link->conn);
    explicit_bzero(&link->debts, sizeof link->debts);
    free(link);
}

void rl_link_drop(struct rl_store *store, unsigned index, struct rl_link *link)
{
    if (link != NULL)
        rl_link_return_debts(store, index, link);
    rl_link_close(link, false);
}

void rl_link_return_debts(struct rl_store *store, unsigned index, struct rl_link *link)
{
    for (size_t i = 0; i < link->debts.count; i++)
        rl_node_owe(store, index, &link->debts.items[i]);
    link->debts.count = 0;
}

/* Once all have come the releases among them are done, unless one was not executed. To send the
 * others again as well does no harm: their owners never come back. */
void rl_link_past(struct rl_link *link, struct rd_reply *reply)
{
    if (reply->type == RD_REPLY_ERROR && rd_verdict(reply->text) == RD_NOSCRIPT)
        link->unloaded = true;
    if (--link->owed == 0 && !link->unloaded)
        link->debts.count = 0;
    rd_reply_free(reply);
}

static void set_limit(const struct rl_store *store, struct rl_link *link)
{
    int64_t come_ms = store->timeout_ms > COME_MS ? store->timeout_ms : COME_MS;

    link->limit_ns = now_of(store) + come_ms * HF__NS_PER_MS;
}

struct rl_link *rl_link_begin(struct rl_store *store, unsigned index)
{
    const struct rd_node *node = store->node[index].node;
    struct rl_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->conn = rd_conn_begin(&node->pool.address, node->pool.setup->tls);
    if (link->conn == NULL) {
        free(link);
        return NULL;
    }
    set_limit(store, link);
    return link;
}

bool rl_link_send(struct rl_link *link, const struct rd_request *request)
{
    int64_t now_ns = hf__now_ns();
    struct hf__patience soon = {.deadline_ns = now_ns + SEND_MS * HF__NS_PER_MS, .cancel_fd = -1};

    if (link->heard_ns >= link->asked_ns)
        link->asked_ns = now_ns;
    return !link->conn->broken && rd_conn_send(link->conn, request, &soon) == HF_OK;
}

bool rl_link_glance(struct rl_link *link, struct rd_reply **reply)
{
    for (;;) {
        if (rd_conn_glance(link->conn, reply) != HF_OK) {
            *reply = NULL;
            return false;
        }
        if (*reply != NULL)
            link->heard_ns = hf__now_ns();
        if (*reply == NULL || link->owed == 0)
            return true;
        rl_link_past(link, *reply);
    }
}

void rl_build_release(struct rd_request *request, const struct rd_keys *keys, const char *owner,
                      uint64_t token, const char *flags)
{
    rd_script_begin(request, RD_SCRIPT_REDLOCK_RELEASE, keys, 3);
    rd_request_word(request, owner);
    rd_request_number(request, (int64_t)token);
    rd_request_word(request, flags);
}

static void build_scripts(struct rd_request *request)
{
    for (size_t i = 0; i < SCRIPTS; i++)
        rd_request_command(
            request, (const char *const[]){"SCRIPT", "LOAD", rd_scripts[scripts[i]].text, NULL});
}

bool rl_link_load(struct rl_link *link)
{
    struct rd_request request = {0};
    bool sent;

    build_scripts(&request);
    sent = rl_link_send(link, &request);
    rd_request_release(&request);
    link->owed += sent ? SCRIPTS : 0;
    return sent;
}

/* What a new connection says first. */
static void build_greeting(const struct rd_url *url, struct rl_link *link,
                           struct rd_request *request)
{
    if (url->parts.has_password || url->parts.user[0] != '\0') {
        if (url->parts.user[0] != '\0')
            rd_request_command(
                request, (const char *const[]){"AUTH", url->parts.user, url->parts.password, NULL});
        else
            rd_request_command(request, (const char *const[]){"AUTH", url->parts.password, NULL});
        link->expected++;
    }
    if (url->db != 0) {
        rd_request_begin(request, 2);
        rd_request_word(request, "SELECT");
        rd_request_number(request, url->db);
        link->expected++;
    }
}

/* Everything in one go: who we are, our scripts, who it is, whether it votes. */
static void meet(struct rl_store *store, unsigned index, struct rl_link *link, bool greets)
{
    struct rd_request request = {0};

    forget_replies(link);
    set_limit(store, link);
    link->state = RL_MEETING;
    if (greets)
        build_greeting(&store->setup.url, link, &request);
    build_scripts(&request);
    rd_incarnation_ask(store->node[index].node, &request);
    rd_request_command(&request, (const char *const[]){"INFO", "server", NULL});
    rd_request_command(&request, (const char *const[]){"TIME", NULL});
    link->expected += SCRIPTS + RD_MEETING_REPLIES + IDENTITY_REPLIES;
    if (!rl_link_send(link, &request))
        link->conn->broken = true;
    rd_request_clear(&request); /* it may have the password */
    rd_request_release(&request);
}

void rl_link_meet(struct rl_store *store, unsigned index, struct rl_link *link)
{
    meet(store, index, link, false);
}

/* What the answers before the handshake's are worth: only errors matter. */
static enum hf_status hear_greeting(const struct rd_node *node, const struct rl_link *link,
                                    unsigned count, struct hf_error *err)
{
    for (unsigned i = 0; i < count; i++) {
        if (link->replies[i]->type == RD_REPLY_ERROR)
            return rd_greeting_refused(link->replies[i]->text, node->pool.setup->url.parts.shown,
                                       err);
    }
    return HF_OK;
}

/* The answers are all there. True: ready. */
static bool conclude(struct rl_store *store, unsigned index, struct rl_link *link,
                     struct hf_error *err)
{
    unsigned greeting = link->expected - RD_MEETING_REPLIES - IDENTITY_REPLIES;
    bool welcome = hear_greeting(store->node[index].node, link, greeting, err) == HF_OK;

    if (welcome)
        /* The answers may have waited for a caller; then its clock is not what it was. */
        rl_node_met(store, index, link->replies + greeting, now_of(store) >= link->limit_ns);
    forget_replies(link);
    return welcome;
}

/* Takes in what has come of the answers. False: not all of it yet. */
static bool listen(struct rl_link *link)
{
    while (link->heard < link->expected) {
        struct rd_reply *reply;

        if (!rl_link_glance(link, &reply))
            return true;
        if (reply == NULL)
            return false;
        link->replies[link->heard++] = reply;
    }
    return true;
}

static bool give_up(struct rl_store *store, unsigned index, struct rl_link *link,
                    enum hf_status status, struct hf_error *err)
{
    link->conn->broken = true;
    rl_node_reached(store, index, false);
    if (status != HF_OK)
        (void)rd_pool_fail(&store->node[index].node->pool, status, link->conn->why, err);
    return true;
}

bool rl_link_step(struct rl_store *store, unsigned index, struct rl_link *link,
                  struct hf_error *err)
{
    enum hf_status status;

    if (link->state == RL_CONNECTING && rd_conn_step(link->conn, &status)) {
        if (status != HF_OK)
            return give_up(store, index, link, status, err);
        meet(store, index, link, true);
    }
    if (link->state == RL_MEETING && (link->conn->broken || listen(link))) {
        if (link->conn->broken)
            return give_up(store, index, link, HF_UNREACHABLE, err);
        if (!conclude(store, index, link, err))
            return give_up(store, index, link, HF_OK, err);
        link->state = RL_READY;
        rl_node_reached(store, index, true);
    }
    if (link->state != RL_READY && now_of(store) >= link->limit_ns) {
        memcpy(link->conn->why, "it did not answer in time", sizeof "it did not answer in time");
        return give_up(store, index, link, HF_UNREACHABLE, err);
    }
    return link->state == RL_READY;
}

/* Writes a release for each debt that its ttl has not settled, and takes it over. */
static void take_over(struct rl_store *store, struct rl_link *link, const struct rl_debts *due,
                      struct rd_request *request)
{
    for (size_t i = 0; i < due->count; i++) {
        struct rd_keys keys;

        if (due->items[i].until_ns < now_of(store) ||
            rd_claim_keys(&store->setup.url, due->items[i].name, &keys, NULL) != HF_OK)
            continue;
        rl_build_release(request, &keys, due->items[i].owner, due->items[i].token,
                         due->items[i].flags);
        rl_debts_add(&link->debts, &due->items[i]);
        link->owed++;
    }
}

void rl_link_settle(struct rl_store *store, unsigned index, struct rl_link *link)
{
    struct rd_request request = {0};
    struct rl_debts due;

    if (link->unloaded) {
        /* Also for what is asked next: a node that always answers last is never seen to lack it. */
        rl_link_return_debts(store, index, link);
        link->conn->broken = !rl_link_load(link);
        link->unloaded = false;
    }
    rl_node_take_debts(store, index, &due);
    if (due.count == 0)
        return;
    take_over(store, link, &due, &request);
    if (!rl_link_send(link, &request))
        link->conn->broken = true; /* and what it owes falls back */
    rd_request_clear(&request);
    rd_request_release(&request);
    explicit_bzero(&due, sizeof due);
}
