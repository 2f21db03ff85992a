/* redlock_round.c - one request to every node at once, and the answers as they come. */
#include "stores/redis/redlock.h"
#include "base/base.h"
#include "stores/redis/verdict.h"

#include <string.h>

#define SEND_MS 5 /* what a full socket may cost; requests are small */

void rl_round_begin(struct rl_round *round, struct rl_store *store, bool votes)
{
    memset(round, 0, sizeof *round);
    round->store = store;
    for (unsigned i = 0; i < store->count; i++) {
        struct hf_error err;

        round->missing[i] = rl_node_take(store, i, votes, &round->conn[i], round->id[i], &err);
        if (round->missing[i] == HF_OK)
            continue;
        round->conn[i] = NULL;
        if (round->note.code == HF_OK || round->missing[i] == HF_INVALID)
            round->note = err;
        if (round->missing[i] == HF_QUARANTINE &&
            (round->retry_after_ms == 0 || err.retry_after_ms < round->retry_after_ms))
            round->retry_after_ms = err.retry_after_ms > 0 ? err.retry_after_ms : 1;
    }
}

bool rl_round_send(struct rl_round *round, unsigned index)
{
    struct rd_patience soon = {.deadline_ns = hf__now_ns() + SEND_MS * HF__NS_PER_MS,
                               .cancel_fd = -1};
    struct rd_conn *conn = round->conn[index];
    bool sent =
        conn != NULL && !conn->broken && rd_conn_send(conn, &round->request, &soon) == HF_OK;

    rd_request_clear(&round->request);
    round->pending[index] += sent;
    return sent;
}

/* An answer that has come already. *index = count: none. */
static bool look(struct rl_round *round, unsigned index, struct rd_reply **reply)
{
    struct rd_conn *conn = round->conn[index];

    for (;;) {
        if (rd_conn_glance(conn, reply) != HF_OK) {
            *reply = NULL;
            round->pending[index] = 0;
            return true;
        }
        if (*reply == NULL)
            return false;
        if (conn->owed == 0)
            break;
        conn->owed--;
        rd_reply_free(*reply);
    }
    round->pending[index]--;
    return true;
}

bool rl_round_next(struct rl_round *round, int64_t deadline_ns, unsigned *index,
                   struct rd_reply **reply)
{
    struct pollfd fds[HF__QUORUM_NODES_MAX];
    unsigned who[HF__QUORUM_NODES_MAX];

    for (;;) {
        nfds_t count = 0;

        for (unsigned i = 0; round->ready != 0 && i < round->store->count; i++) {
            bool has = (round->ready & 1u << i) != 0 && round->pending[i] > 0;

            round->ready &= ~(1u << i);
            if (has && look(round, i, reply)) {
                *index = i;
                return true;
            }
        }
        for (unsigned i = 0; i < round->store->count; i++) {
            if (round->pending[i] == 0)
                continue;
            who[count] = i;
            fds[count++] = (struct pollfd){.fd = round->conn[i]->fd, .events = POLLIN};
            /* TLS, and what was read along with an earlier answer, does not show in poll. */
            if ((round->conn[i]->tls != NULL || rd_reader_pending(round->conn[i]->reader)) &&
                look(round, i, reply)) {
                *index = i;
                return true;
            }
        }
        if (count == 0 || hf__poll_until(fds, count, deadline_ns) == 0)
            return false;
        for (nfds_t i = 0; i < count; i++)
            round->ready |= fds[i].revents != 0 ? 1u << who[i] : 0;
    }
}

void rl_round_end(struct rl_round *round)
{
    for (unsigned i = 0; i < round->store->count; i++) {
        if (round->conn[i] == NULL)
            continue;
        round->conn[i]->owed += round->pending[i];
        rl_node_give(round->store, i, round->conn[i]);
    }
    rd_request_release(&round->request);
}

enum hf__quorum_no rl_round_error(struct rl_round *round, unsigned index, const char *lock,
                                  const struct rd_reply *reply)
{
    struct hf_error err;
    const char *text = reply->type == RD_REPLY_ERROR ? reply->text : "";

    if (rd_reply_is(reply, "new") || (text[0] != '\0' && rd_verdict(text) == RD_NOSCRIPT)) {
        rl_node_unload(round->store, index);
        if (round->retry_after_ms == 0)
            round->retry_after_ms = 1; /* it has to be asked who it is: at once */
        return HF__NO_QUARANTINE;
    }
    if (rd_reply_is(reply, "replica"))
        text = "READONLY";
    if (text[0] != '\0')
        (void)rd_verdict_fail(text, lock, round->store->rd.url.shown, &err);
    else
        (void)rd_nonsense(&round->store->rd, lock, &err);
    if (round->note.code == HF_OK || err.code == HF_DENIED)
        round->note = err;
    return HF__NO_UNREACHABLE;
}

enum hf__quorum_no rl_round_missing(const struct rl_round *round, unsigned index)
{
    return round->missing[index] == HF_QUARANTINE ? HF__NO_QUARANTINE : HF__NO_UNREACHABLE;
}

int64_t rl_round_deadline(const struct rl_round *round, int64_t limit_ns)
{
    int64_t end_ns =
        round->store->rd.base.host->now_ns() + round->store->rd.url.node_timeout_ms * HF__NS_PER_MS;

    return end_ns < limit_ns ? end_ns : limit_ns;
}
