/* url.c - what the URL of a MariaDB database says. */
#include "dbs/mariadb/url.h"

#include <string.h>

enum { PORT_DEFAULT = 3306 };

static const struct hf__url_option options[] = {
    HF__OPTION_TEXT("socket", struct mariadb_url, socket, 1),
    HF__OPTION_TEXT("password_file", struct mariadb_url, password_file, 1),
    HF__OPTION_TEXT("ca", struct mariadb_url, ca, 1),
    {.name = NULL}};
static const struct hf__url_form form = {
    .usage = "mariadb://USER@HOST:PORT/DATABASE", .port = PORT_DEFAULT, .options = options};

enum hf_status mariadb_url_read(const char *text, struct mariadb_url *url, struct hf_error *err)
{
    enum hf_status status = hf__url_parse(text, &form, &url->common, url, err);
    const char *path = url->common.path;

    if (status != HF_OK)
        return status;
    if (path[0] != '/' || path[1] == '\0' ||
        !hf__url_copy(url->database, sizeof url->database, path + 1, strlen(path + 1)) ||
        url->common.host_count > 1)
        return hf__fail(err, HF_INVALID, "database %.100s: write %s", url->common.shown,
                        form.usage);
    if (url->common.has_password)
        return HF_OK;
    return hf__find_password(url->password_file, "MYSQL_PWD", url->common.shown,
                             url->common.password, sizeof url->common.password, err);
}
