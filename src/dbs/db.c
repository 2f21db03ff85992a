/* db.c - from a database's URL to its plugin. */
#include "dbs/db.h"
#include "base/base.h"
#include "client/plugin.h"

#include <string.h>

/* The plugins of this tree: a folder of src/dbs and the schemes it serves. */
static const struct known {
    const char *plugin;
    enum hf__dialect dialect;
    const char *schemes[3]; /* ends with NULL */
} known[] = {
    {"db-postgres", HF__POSTGRES, {"postgres", "postgresql"}},
    {"db-sqlite", HF__SQLITE, {"sqlite"}},
    {"db-mariadb", HF__MARIADB, {"mariadb", "mysql"}},
};

static const struct known *known_of(const char *scheme, size_t len)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (const char *const *at = known[i].schemes; *at != NULL; at++)
            if (strlen(*at) == len && strncmp(*at, scheme, len) == 0)
                return &known[i];
    return NULL;
}

static enum hf_status load(const char *name, const struct hf__db_ops **out, struct hf_error *err)
{
    char broken[160] = "";
    char remedy[HF__REMEDY_SIZE];
    const struct hf__db_plugin *(*entry)(void);
    const struct hf__db_plugin *plugin;
    void *symbol;

    symbol = hf__plugin_symbol(name, "hf_db_plugin", broken, sizeof broken);
    hf__plugin_remedy(name, remedy, sizeof remedy);
    if (symbol == NULL)
        return hf__fail(err, HF_UNSUPPORTED, "such databases need the plugin %s.so: %s", name,
                        broken[0] != '\0' ? broken : remedy);
    memcpy(&entry, &symbol, sizeof entry);
    plugin = entry();
    if (plugin->abi != HF__DB_ABI)
        return hf__fail(err, HF_UNSUPPORTED, "the plugin %s.so is of another version", name);
    *out = plugin->ops;
    return HF_OK;
}

static enum hf_status find(const char *url, const struct known **which,
                           const struct hf__db_ops **out, struct hf_error *err)
{
    *which = known_of(url, hf__url_scheme_len(url));
    if (strlen(url) >= HF__URL_MAX)
        return hf__fail(err, HF_INVALID, "a database's URL has at most %d bytes", HF__URL_MAX - 1);
    if (*which == NULL)
        return hf__fail(err, HF_INVALID,
                        "not a database's URL: write postgres://..., sqlite:PATH or "
                        "mariadb://USER@HOST/DATABASE");
    if (!hf__url_is_clear(url))
        return hf__fail(err, HF_INVALID,
                        "a URL of which it is not clear where the password ends: in a user name or "
                        "password write / as %%2F, ? as %%3F, # as %%23 and @ as %%40");
    return load((*which)->plugin, out, err);
}

enum hf_status hf__db_find(const char *url, enum hf__dialect *out, struct hf_error *err)
{
    const struct known *which;
    const struct hf__db_ops *ops;
    enum hf_status status = find(url, &which, &ops, err);

    if (status == HF_OK)
        *out = which->dialect;
    return status;
}

enum hf_status hf__db_open(const char *url, const struct hf__patience *patience,
                           struct hf__db **out, struct hf__db_error *err)
{
    const struct hf__db_ops *ops = NULL;
    const struct known *which;
    enum hf_status status;

    *out = NULL;
    (void)hf__db_ok(err);
    status = find(url, &which, &ops, &err->said);
    if (status != HF_OK)
        return status;
    return ops->open(&hf__host, url, patience, out, err);
}

void hf__db_close(struct hf__db *db)
{
    if (db != NULL)
        db->ops->close(db);
}

/* After an answer: it is whole, or there is none. */
static enum hf_status ended(enum hf_status status, struct hf__db_rows *rows,
                            struct hf__db_error *err)
{
    if (status == HF_OK && !hf__db_rows_end(rows))
        status = hf__nomem(&err->said);
    if (status != HF_OK)
        hf__db_rows_clear(rows);
    return status;
}

enum hf_status hf__db_execute(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_rows *rows,
                              struct hf__db_error *err)
{
    struct hf__db_rows own = {.count = 0};
    enum hf_status status;

    if (rows == NULL)
        rows = &own;
    hf__db_rows_clear(rows);
    status = ended(db->ops->execute(db, sql, patience, rows, err), rows, err);
    hf__db_rows_release(&own);
    return status;
}

enum hf_status hf__db_prepare(struct hf__db *db, const char *sql,
                              const struct hf__patience *patience, struct hf__db_statement **out,
                              struct hf__db_error *err)
{
    *out = NULL;
    return db->ops->prepare(db, sql, patience, out, err);
}

enum hf_status hf__db_run(struct hf__db_statement *statement, const struct hf__db_text *params,
                          size_t count, const struct hf__patience *patience,
                          struct hf__db_rows *rows, struct hf__db_error *err)
{
    struct hf__db_rows own = {.count = 0};
    enum hf_status status;

    if (rows == NULL)
        rows = &own;
    hf__db_rows_clear(rows);
    status =
        ended(statement->db->ops->run(statement, params, count, patience, rows, err), rows, err);
    hf__db_rows_release(&own);
    return status;
}

void hf__db_finish(struct hf__db_statement *statement)
{
    if (statement != NULL)
        statement->db->ops->finish(statement);
}
