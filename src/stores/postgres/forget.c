/* forget.c - removing the row of a lock that nobody will use again. Nobody but the owner of the
 * schema has a right on its tables, so for other roles the row stays. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <string.h>

/* The row is locked by the DELETE itself: whoever takes the lock meanwhile is seen. Then those who
 * died while they waited, and who broke it, are forgotten, too. */
static const struct pg_statement forget_statement = {
    "WITH gone AS (DELETE FROM holdfast.lock AS l WHERE l.name = $1::pg_catalog.bytea"
    " AND (l.owner IS NULL OR l.expires <= pg_catalog.clock_timestamp())"
    " AND NOT EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.lock = l.name"
    " AND w.alive_until > pg_catalog.clock_timestamp()) RETURNING 1),"
    " free AS (SELECT EXISTS (SELECT FROM gone) OR NOT EXISTS"
    " (SELECT FROM holdfast.lock AS l WHERE l.name = $1::pg_catalog.bytea) AS yes),"
    " dead AS (DELETE FROM holdfast.waiter AS w WHERE (SELECT f.yes FROM free AS f)"
    " AND w.lock = $1::pg_catalog.bytea AND w.alive_until <= pg_catalog.clock_timestamp()),"
    " broken AS (DELETE FROM holdfast.broken AS b WHERE (SELECT f.yes FROM free AS f)"
    " AND b.lock = $1::pg_catalog.bytea)"
    " SELECT f.yes FROM free AS f",
    NULL, 0};

enum hf_status pg_forget(struct hf_store_base *base, const char *name, int64_t deadline_ns,
                         struct hf_error *report)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_call call = {.lock = name,
                           .statement = &forget_statement,
                           .params = &params,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT};
    struct pg_answer answer;
    enum hf_status status;
    bool done;

    pg_params_bytes(&params, name, strlen(name));
    status = pg_call(store, &call, &answer, report);
    if (status != HF_OK)
        return status;
    done = PQntuples(answer.rows) == 1 && strcmp(PQgetvalue(answer.rows, 0, 0), "t") == 0;
    PQclear(answer.rows);
    if (!done)
        return hf__fail_lock(report, HF_BUSY, name, store->url.shown, " is held or waited for");
    return hf__fail(report, HF_OK, "the schema holdfast, with a row in holdfast.met");
}
