/* sql.c - prints the migrations of src/idem/sql. */
#include "idem/idem.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const texts[] = {[HF__POSTGRES] =
#include "idem/postgres.inc"
                                        ,
                                    [HF__SQLITE] =
#include "idem/sqlite.inc"
                                        , [HF__MARIADB] =
#include "idem/mariadb.inc"
};

enum hf_status hf__idem_sql(const struct hf__idem_sql *what, char **out, struct hf_error *err)
{
    static const char *const up[] = {"up", NULL};
    static const char *const down[] = {"down", "down-schema", "down-end", NULL};
    static const char *const down_in[] = {"down", "down-end", NULL}; /* a schema of somebody's */
    char schema[HF__SQL_QUOTED_SIZE];
    char keep[32];
    const struct hf__migration_word words[] = {
        {"@SCHEMA@", schema}, {"@KEEP@", keep}, {NULL, NULL}};
    int64_t keep_ms = what->keep_ms > 0 ? what->keep_ms : HF__IDEM_KEEP_MS;
    const char *const *sections = up;
    enum hf_status status;

    *out = NULL;
    if (what->schema != NULL && what->dialect != HF__POSTGRES)
        return hf__fail(err, HF_INVALID, "only PostgreSQL has schemas here");
    status = hf__sql_name(schema, HF__POSTGRES,
                          what->schema != NULL ? what->schema : "holdfast_idem", err);
    if (status != HF_OK)
        return status;
    (void)snprintf(keep, sizeof keep, "%" PRId64 ".%03" PRId64, keep_ms / 1000, keep_ms % 1000);
    if (what->down)
        sections = what->schema != NULL ? down_in : down;
    return hf__migration_text(texts[what->dialect], sections, words, out, err);
}
