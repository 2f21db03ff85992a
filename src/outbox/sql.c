/* sql.c - prints the migrations of src/outbox/sql. */
#include "outbox/outbox.h"

static const char *const texts[] = {[HF__POSTGRES] =
#include "outbox/postgres.inc"
                                        ,
                                    [HF__SQLITE] =
#include "outbox/sqlite.inc"
                                        , [HF__MARIADB] =
#include "outbox/mariadb.inc"
};

enum hf_status hf__outbox_sql(const struct hf__outbox_sql *what, char **out, struct hf_error *err)
{
    static const char *const up[] = {"up", NULL};
    static const char *const down[] = {"down", "down-schema", "down-end", NULL};
    static const char *const down_in[] = {"down", "down-end", NULL}; /* a schema of somebody's */
    char schema[HF__SQL_QUOTED_SIZE];
    const struct hf__migration_word words[] = {{"@SCHEMA@", schema}, {NULL, NULL}};
    const char *const *sections = up;
    enum hf_status status;

    *out = NULL;
    if (what->schema != NULL && what->dialect != HF__POSTGRES)
        return hf__fail(err, HF_INVALID, "only PostgreSQL has schemas here");
    status = hf__sql_name(schema, HF__POSTGRES,
                          what->schema != NULL ? what->schema : "holdfast_outbox", err);
    if (status != HF_OK)
        return status;
    if (what->down)
        sections = what->schema != NULL ? down_in : down;
    return hf__migration_text(texts[what->dialect], sections, words, out, err);
}
