/* identity.c - who a PostgreSQL is: the cluster's system identifier, and the database in it. A
 * standby and a server that was promoted have the same. */
#include "base/base.h"
#include "stores/postgres/postgres.h"

#include <stdio.h>

static const struct pg_statement identity_statement = {
    "SELECT s.system_identifier::pg_catalog.text || ':' || d.oid::pg_catalog.text"
    " FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_database AS d"
    " WHERE d.datname = pg_catalog.current_database()",
    NULL, 0};

enum hf_status pg_identity(struct hf_store_base *base, char out[HF_IDENTITY_SIZE],
                           int64_t deadline_ns, struct hf_error *err)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct pg_call call = {.statement = &identity_statement,
                           .params = &params,
                           .patience = {.deadline_ns = deadline_ns, .cancel_fd = -1},
                           .use = PG_USE_URGENT,
                           .only_reads = true};
    struct pg_answer answer;
    enum hf_status status = pg_call(store, &call, &answer, err);

    if (status != HF_OK)
        return status;
    if (PQntuples(answer.rows) == 1)
        (void)snprintf(out, HF_IDENTITY_SIZE, "id:postgres:%.60s", PQgetvalue(answer.rows, 0, 0));
    else
        status = pg_nonsense(store, NULL, err);
    PQclear(answer.rows);
    return status == HF_OK ? hf__ok(err) : status;
}
