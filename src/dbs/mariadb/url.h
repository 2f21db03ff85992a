/* url.h - what the URL of a MariaDB database says. */
#ifndef HF_DBS_MARIADB_URL_H
#define HF_DBS_MARIADB_URL_H

#include "base/base.h"

struct mariadb_url {
    struct hf__url common;
    char socket[HF__URL_TEXT_MAX];
    char password_file[HF__URL_TEXT_MAX];
    char ca[HF__URL_TEXT_MAX];
    char database[HF__URL_TEXT_MAX];
};

/* Takes text apart and finds the password where it does not say one. */
enum hf_status mariadb_url_read(const char *text, struct mariadb_url *url, struct hf_error *err);

#endif /* HF_DBS_MARIADB_URL_H */
