/* call.c - one request and its answer. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

#define TRIES_MAX    200   /* of one call, after serialization failures */
#define LINGER_MS    60000 /* how long a server may take to read what takes a request back */
#define PAUSE_MAX_MS 20    /* before asking again; drawn at random */

int64_t pg_left_ms(const struct pg_store *store, int64_t deadline_ns)
{
    int64_t left_ms = (deadline_ns - store->base.host->now_ns()) / HF__NS_PER_MS;

    return left_ms < 1 ? 1 : left_ms > HF_TTL_MAX_MS ? HF_TTL_MAX_MS : left_ms;
}

/* A short pause, so that those who collided do not collide again. False: there is no time. */
static bool pause_before_retry(const struct pg_store *store, const struct pg_call *call)
{
    uint8_t dice;

    store->base.host->random(&dice, sizeof dice);
    return hf__patience_pause(&call->patience, store->base.host->now_ns() +
                                                   dice % PAUSE_MAX_MS * HF__NS_PER_MS +
                                                   HF__NS_PER_MS / 4) == HF__WAITED_READY;
}

/* What a standby answers is no answer. */
static enum hf_status accept(const struct pg_store *store, const struct pg_call *call,
                             const struct pg_outcome *outcome, struct pg_answer *out,
                             struct hf_error *err)
{
    out->rows = outcome->rows;
    out->sent_at_ns = outcome->sent_at_ns;
    if (!pg_row_standby(out->rows))
        return HF_OK;
    PQclear(out->rows);
    out->rows = NULL;
    return pg_error_fail(PG_STATE_READ_ONLY, "", call->lock, store->url.shown, err);
}

static enum hf_status send_once(struct pg_store *store, const struct pg_call *call,
                                struct pg_answer *out, bool *again, struct hf_error *err)
{
    struct pg_outcome outcome;
    bool own = call->conn != NULL && !call->conn->broken;
    struct pg_conn *conn = own ? call->conn : NULL;
    enum hf_status status = HF_OK;

    if (!own)
        status = pg_pool_take(&store->main, call->use, false, &call->patience, &conn, err);
    if (status != HF_OK)
        return status;
    pg_conn_execute(conn, store->base.host, call->statement, call->params, &call->patience,
                    &outcome);
    switch (outcome.fate) {
    case PG_DONE:
        status = accept(store, call, &outcome, out, err);
        break;
    case PG_REFUSED:
        *again = pg_error_again(outcome.state);
        memcpy(out->state, outcome.state, sizeof out->state);
        status = pg_error_fail(outcome.state, outcome.why, call->lock, store->url.shown, err);
        break;
    case PG_UNSENT:
        status = hf__fail_lock(err, HF_UNREACHABLE, NULL, store->url.shown, ": %s", outcome.why);
        break;
    case PG_LOST:
    case PG_CANCELLED:
        status = pg_no_answer(store, call, outcome.fate == PG_LOST ? HF_UNKNOWN : HF_CANCELLED,
                              outcome.why, err);
        if (call->undo_statement != NULL) {
            out->undone = pg_conn_follow(conn, call->undo_statement, call->undo);
            if (out->undone)
                conn->linger_until_ns = store->base.host->now_ns() + LINGER_MS * HF__NS_PER_MS;
            conn->broken = true;
        }
        if (outcome.silent)
            pg_pool_doubt(&store->main, outcome.sent_at_ns);
        break;
    }
    if (!own)
        pg_pool_give(&store->main, conn);
    return status;
}

enum hf_status pg_call(struct pg_store *store, const struct pg_call *given, struct pg_answer *out,
                       struct hf_error *err)
{
    struct pg_call quiet = *given;
    const struct pg_call *call = given;
    enum hf_status status;
    bool again;

    quiet.params = given->quiet;
    for (int tries = 0;; tries++) {
        *out = (struct pg_answer){0};
        again = false;
        status = send_once(store, call, out, &again, err);
        if (pg_error_no_wake(out->state) && given->quiet != NULL && call == given) {
            call = &quiet;
            continue;
        }
        if (!again || tries == TRIES_MAX || !pause_before_retry(store, call))
            return status;
    }
}
