/* db.c - MariaDB, through its client library. It waits by itself; its limits are whole seconds. */
#include "dbs/db.h"
#include "base/base.h"

#include <fcntl.h>
#include <mariadb/errmsg.h>
#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_S = 5, ANSWER_S = HF__DB_ANSWER_MS / 1000, PORT = 3306, PATH_SIZE = 256 };

/* Who takes URLs apart speaks of stores. */
static enum hf_status about_database(struct hf_error *err)
{
    char text[HF_ERROR_TEXT_SIZE];

    memcpy(text, err->text, sizeof text);
    if (strncmp(text, "store ", 6) != 0)
        return err->code;
    return hf__fail(err, err->code, "database %s", text + 6);
}

/* The URL, taken apart. */
struct address {
    struct hf__url url;
    char socket[PATH_SIZE];
    char ca[PATH_SIZE];
};

struct hf__db {
    MYSQL *link;
    char shown[HF__URL_MAX];
};

static const struct hf__url_option options[] = {
    HF__OPTION_TEXT("socket", struct address, socket, 1),
    HF__OPTION_TEXT("ca", struct address, ca, 1),
    {.name = NULL}};

static const struct hf__url_form form = {
    .usage = "mariadb://USER@HOST:PORT/DATABASE, or ?socket=PATH instead of a host",
    .port = PORT,
    .options = options};

static enum hf_status status_of(unsigned code)
{
    switch (code) {
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_LOCK_DEADLOCK:
    case ER_CHECKREAD: /* the record has changed since last read */
        return HF_BUSY;
    case ER_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
        return HF_DENIED;
    case ER_CON_COUNT_ERROR:
    case ER_SERVER_SHUTDOWN:
    case ER_CONNECTION_KILLED:
    case ER_OPTION_PREVENTS_STATEMENT: /* read-only: it may become the primary */
        return HF_UNREACHABLE;
    default:
        return code >= CR_MIN_ERROR && code <= CR_MAX_ERROR ? HF_UNREACHABLE : HF_INVALID;
    }
}

static enum hf_status refused(const struct hf__db *db, struct hf_error *err)
{
    unsigned code = mysql_errno(db->link);
    char why[160];

    hf__copy_printable(why, sizeof why, mysql_error(db->link));
    if (code == ER_NO_SUCH_TABLE || code == ER_BAD_FIELD_ERROR)
        return hf__fail(err, HF_INVALID,
                        "database %s: %s; run the migration that \"holdfast outbox sql\" prints",
                        db->shown, why);
    return hf__fail(err, status_of(code), "database %s: %s", db->shown, why);
}

static void close_db(struct hf__db *db)
{
    if (db == NULL)
        return;
    if (db->link != NULL)
        mysql_close(db->link);
    free(db);
}

static enum hf_status connect_to(struct hf__db *db, const struct address *to, struct hf_error *err)
{
    static const unsigned connect_s = CONNECT_S;
    static const unsigned answer_s = ANSWER_S;
    static const my_bool verify = 1;
    const char *host = to->url.host_count > 0 ? to->url.hosts[0].host : NULL;
    unsigned port = to->url.host_count > 0 ? to->url.hosts[0].port : 0;
    const char *name = to->url.path[0] == '/' ? to->url.path + 1 : "";
    char database[HF__URL_TEXT_MAX];

    if (!hf__url_copy(database, sizeof database, name, strlen(name)))
        return hf__fail(err, HF_INVALID, "database %s: that is no name of a database", db->shown);
    mysql_options(db->link, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    mysql_options(db->link, MYSQL_OPT_READ_TIMEOUT, &answer_s);
    mysql_options(db->link, MYSQL_OPT_WRITE_TIMEOUT, &answer_s);
    mysql_options(db->link, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (to->ca[0] != '\0') {
        mysql_ssl_set(db->link, NULL, NULL, to->ca, NULL, NULL);
        mysql_options(db->link, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    }
    if (mysql_real_connect(db->link, to->socket[0] != '\0' ? NULL : host,
                           to->url.user[0] != '\0' ? to->url.user : NULL,
                           to->url.has_password ? to->url.password : NULL, database, port,
                           to->socket[0] != '\0' ? to->socket : NULL, 0) == NULL)
        return refused(db, err);
    /* The command that messages go to must not inherit it. */
    (void)fcntl(mysql_get_socket(db->link), F_SETFD, FD_CLOEXEC);
    return HF_OK;
}

static enum hf_status open_db(const char *url, int cancel_fd, struct hf__db **out,
                              struct hf_error *err)
{
    struct address to = {.socket = ""};
    struct hf__db *db = calloc(1, sizeof *db);
    enum hf_status status = hf__url_parse(url, &form, &to.url, &to, err);

    (void)cancel_fd; /* it waits for a few seconds at most */
    *out = NULL;
    if (db == NULL || (db->link = mysql_init(NULL)) == NULL) {
        free(db);
        return hf__nomem(err);
    }
    (void)snprintf(db->shown, sizeof db->shown, "%s", to.url.shown);
    status = status == HF_OK ? connect_to(db, &to, err) : about_database(err);
    explicit_bzero(&to, sizeof to);
    if (status != HF_OK) {
        close_db(db);
        return status;
    }
    *out = db;
    return HF_OK;
}

static bool read_row(MYSQL_RES *result, MYSQL_ROW row, struct hf__db_answer *answer)
{
    struct hf__db_value values[HF__DB_COLUMNS_MAX];
    const unsigned long *lengths = mysql_fetch_lengths(result);
    unsigned columns = mysql_num_fields(result);

    for (unsigned i = 0; i < columns && i < HF__DB_COLUMNS_MAX; i++)
        values[i] = (struct hf__db_value){.bytes = row[i], .len = lengths[i]};
    return answer->row == NULL || answer->row(values, answer->data);
}

static enum hf_status execute(struct hf__db *db, const char *sql, struct hf__db_answer *answer,
                              struct hf_error *err)
{
    enum hf_status status = HF_OK;
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_real_query(db->link, sql, strlen(sql)) != 0)
        return refused(db, err);
    result = mysql_store_result(db->link);
    if (result == NULL && mysql_field_count(db->link) != 0)
        return refused(db, err);
    if (result == NULL) {
        answer->changed = mysql_affected_rows(db->link);
        return HF_OK;
    }
    while (status == HF_OK && (row = mysql_fetch_row(result)) != NULL)
        if (!read_row(result, row, answer))
            status = hf__nomem(err);
    mysql_free_result(result);
    return status;
}

const struct hf__db_ops *hf__db_plugin(void)
{
    static const struct hf__db_ops ops = {.abi = HF__DB_ABI,
                                          .dialect = HF__MARIADB,
                                          .open = open_db,
                                          .close = close_db,
                                          .execute = execute};

    return &ops;
}
