/* url.h - what a redis URL says.
 *
 *   redis://[user:password@]host[:port][/db][?options]      rediss:// the same over TLS
 *   redis+unix://[user:password@]/path/of/socket[?db=N&options]
 *   redis+sentinel://[user:password@]host[:port][,host...]/master[/db][?options]
 *   redlock://[user:password@]host[:port],host[:port],host[:port][,...][/db][?options]
 *
 * Options: prefix, max_ttl, db, tls=on|off, ca, cert, key, verify=on|off, password_file; redlock
 * has node_timeout besides, redis+sentinel has sentinel_user and sentinel_password_file. */
#ifndef HF_STORES_REDIS_URL_H
#define HF_STORES_REDIS_URL_H

#include "base/url.h"

enum {
    RD_TEXT_MAX = HF__URL_TEXT_MAX, /* bytes of user, password, file names */
    RD_PREFIX_MAX = 101             /* bytes of the prefix, NUL included */
};

#define RD_MAX_TTL_DEFAULT_MS      60000
#define RD_NODE_TIMEOUT_DEFAULT_MS 50
#define RD_NODE_TIMEOUT_MAX_MS     10000
#define RD_PASSWORD_VARIABLE       "HOLDFAST_REDIS_PASSWORD"

#define RD_SENTINEL_PASSWORD_VARIABLE "HOLDFAST_SENTINEL_PASSWORD"

enum rd_kind { RD_DIRECT, RD_SENTINEL, RD_REDLOCK };

struct rd_url {
    enum rd_kind kind;
    struct hf__url parts;     /* user "": Redis' default user. A host that starts with '/' is the
                               * path of a socket */
    char master[RD_TEXT_MAX]; /* RD_SENTINEL: what the sentinels call it */
    unsigned db;
    char prefix[RD_PREFIX_MAX];
    int64_t max_ttl_ms;
    int64_t node_timeout_ms; /* RD_REDLOCK: how long one node may take to answer */
    bool tls;
    bool verify;
    char ca[RD_TEXT_MAX];
    char cert[RD_TEXT_MAX];
    char key[RD_TEXT_MAX];
    char password_file[RD_TEXT_MAX];
    char sentinel_user[RD_TEXT_MAX]; /* "" is the sentinels' default user */
    char sentinel_password[RD_TEXT_MAX];
    char sentinel_password_file[RD_TEXT_MAX];
};

/* Takes text apart. HF_OK or HF_INVALID. Reads neither files nor the environment. */
enum hf_status rd_url_parse(const char *text, struct rd_url *out, struct hf_error *err);
/* Passwords that the URL does not have: from their files, else from the environment. HF_OK,
 * HF_INVALID (no such file, empty, too long) or HF_DENIED. */
enum hf_status rd_url_find_password(struct rd_url *url, struct hf_error *err);

#endif /* HF_STORES_REDIS_URL_H */
