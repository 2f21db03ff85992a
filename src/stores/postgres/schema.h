/* schema.h - the tables and functions in the database, and how they get there. */
#ifndef HF_STORES_POSTGRES_SCHEMA_H
#define HF_STORES_POSTGRES_SCHEMA_H

#include "stores/postgres/conn.h"

#define PG_SCHEMA_VERSION 24 /* what this client speaks */

/* Generated from scripts/, in order: each takes the schema from the version before to its own. */
struct pg_step {
    int version;
    const char *name;
    const char *sql;
};
extern const struct pg_step pg_steps[];
extern const size_t pg_step_count;

/* Brings the schema to PG_SCHEMA_VERSION, in one transaction under an advisory lock, so that
 * clients that come at once do it once. Nothing is changed if it is there already. HF_OK;
 * HF_DENIED: the role may not; HF_UNSUPPORTED: a newer client has been here; HF_UNREACHABLE: try
 * again. */
enum hf_status pg_schema_migrate(struct pg_conn *conn, const struct hf__patience *patience,
                                 const char *shown, struct hf_error *err);

/* *out: the schema is there, of whatever version. HF_OK; HF_DENIED; HF_UNREACHABLE. */
enum hf_status pg_schema_exists(struct pg_conn *conn, const struct hf__patience *patience,
                                const char *shown, bool *out, struct hf_error *err);

/* Fills *err: a newer client has been here. HF_UNSUPPORTED. */
enum hf_status pg_schema_newer(int64_t version, const char *shown, struct hf_error *err);

#endif /* HF_STORES_POSTGRES_SCHEMA_H */
