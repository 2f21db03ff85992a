/* database.c - from the URL of a database to its plugin, and statements to it. */
#include "cli/outbox/outbox.h"

#include "base/base.h"
#include "base/plugin.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *scheme;
    const char *plugin;
    enum hf__dialect dialect;
} known[] = {{"postgres", "db_postgres", HF__POSTGRES},
             {"postgresql", "db_postgres", HF__POSTGRES},
             {"sqlite", "db_sqlite", HF__SQLITE},
             {"mariadb", "db_mariadb", HF__MARIADB},
             {"mysql", "db_mariadb", HF__MARIADB}};

static enum hf_status load(struct outbox_db *db, size_t which, struct hf_error *err)
{
    const struct hf__db_ops *(*entry)(void);
    char broken[160];
    void *symbol = hf__plugin_symbol(known[which].plugin, HF__DB_SYMBOL, broken, sizeof broken);

    if (symbol == NULL && broken[0] != '\0')
        return hf__fail(err, HF_UNSUPPORTED, "the plugin %s.so cannot be loaded: %s",
                        known[which].plugin, broken);
    if (symbol == NULL)
        return hf__fail(err, HF_UNSUPPORTED,
                        "databases of kind %s: need the plugin %s.so: install it, or set "
                        "HOLDFAST_STORE_PATH to its folder, an absolute path",
                        known[which].scheme, known[which].plugin);
    memcpy(&entry, &symbol, sizeof entry);
    db->ops = entry();
    if (db->ops->abi != HF__DB_ABI)
        return hf__fail(err, HF_UNSUPPORTED, "the plugin %s.so is of another version of holdfast",
                        known[which].plugin);
    return HF_OK;
}

enum hf_status outbox_db_init(struct outbox_db *db, const char *schema, struct hf_error *err)
{
    size_t len = hf__url_scheme_len(db->url);
    size_t which = 0;
    enum hf_status status;

    db->cancel_fd = -1;
    hf__url_redact(db->shown, sizeof db->shown, db->url);
    while (which < sizeof known / sizeof known[0] &&
           (strlen(known[which].scheme) != len || strncmp(known[which].scheme, db->url, len) != 0))
        which++;
    if (which == sizeof known / sizeof known[0])
        return hf__fail(err, HF_INVALID,
                        "--db: that is no database: write postgres://USER@HOST/DATABASE, "
                        "mariadb://USER@HOST/DATABASE or sqlite:FILE");
    if (strlen(db->url) >= HF__URL_MAX)
        return hf__fail(err, HF_INVALID, "--db: a URL has at most %d bytes", HF__URL_MAX - 1);
    if (!hf__url_is_clear(db->url))
        return hf__fail(err, HF_INVALID,
                        "--db: it is not clear where the password ends: in a user name or password "
                        "write / as %%2F, ? as %%3F, # as %%23 and @ as %%40");
    status = hf__outbox_names(&db->names, known[which].dialect, schema, err);
    if (status == HF_OK)
        status = load(db, which, err);
    if (status != HF_OK)
        return status;
    db->stream = open_memstream(&db->text, &db->text_len);
    return db->stream != NULL ? HF_OK : hf__nomem(err);
}

void outbox_db_release(struct outbox_db *db)
{
    outbox_db_close(db);
    if (db->stream != NULL)
        (void)fclose(db->stream);
    free(db->text);
    explicit_bzero(db->url, sizeof db->url);
}

enum hf_status outbox_db_open(struct outbox_db *db, struct hf_error *err)
{
    const char *const *session = hf__outbox_session(db->names.dialect);
    enum hf_status status = db->ops->open(db->url, db->cancel_fd, &db->link, err);

    for (; status == HF_OK && *session != NULL; session++)
        status = outbox_db_run(db, *session, err);
    if (status != HF_OK)
        outbox_db_close(db);
    return status;
}

void outbox_db_close(struct outbox_db *db)
{
    if (db->link != NULL)
        db->ops->close(db->link);
    db->link = NULL;
}

FILE *outbox_db_say(struct outbox_db *db)
{
    rewind(db->stream);
    return db->stream;
}

enum hf_status outbox_db_do(struct outbox_db *db, struct hf__db_answer *answer,
                            struct hf_error *err)
{
    struct hf__db_answer dropped = {.row = NULL};

    if (fputc('\0', db->stream) == EOF || fflush(db->stream) != 0 || ferror(db->stream) != 0)
        return hf__nomem(err);
    return db->ops->execute(db->link, db->text, answer != NULL ? answer : &dropped, err);
}

enum hf_status outbox_db_run(struct outbox_db *db, const char *sql, struct hf_error *err)
{
    struct hf__db_answer dropped = {.row = NULL};

    return db->ops->execute(db->link, sql, &dropped, err);
}

enum hf_status outbox_db_end(struct outbox_db *db, enum hf_status status, struct hf_error *err)
{
    struct hf_error dropped;

    if (status == HF_OK)
        status = outbox_db_run(db, "COMMIT", err);
    if (status == HF_OK || status == HF_UNREACHABLE)
        return status;
    /* What cannot even be rolled back is so by its end. */
    if (outbox_db_run(db, "ROLLBACK", &dropped) != HF_OK)
        outbox_db_close(db);
    return status;
}
