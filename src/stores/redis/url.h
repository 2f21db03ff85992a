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

#include <holdfast.h>

enum {
    RD_ADDRESSES_MAX = 16,
    RD_HOST_MAX = 256,  /* bytes of a host name or of a socket's path, NUL included */
    RD_TEXT_MAX = 512,  /* bytes of user, password, file names                       */
    RD_PREFIX_MAX = 101 /* bytes of the prefix, NUL included                         */
};

#define RD_MAX_TTL_DEFAULT_MS      60000
#define RD_NODE_TIMEOUT_DEFAULT_MS 50
#define RD_NODE_TIMEOUT_MAX_MS     10000
#define RD_PASSWORD_VARIABLE       "HOLDFAST_REDIS_PASSWORD"

#define RD_SENTINEL_PASSWORD_VARIABLE "HOLDFAST_SENTINEL_PASSWORD"

enum rd_kind { RD_DIRECT, RD_SENTINEL, RD_REDLOCK };

/* Where a server listens. */
struct rd_address {
    char host[RD_HOST_MAX]; /* name, IP address, or the socket's path if it starts with '/' */
    unsigned port;
};

struct rd_url {
    enum rd_kind kind;
    struct rd_address addresses[RD_ADDRESSES_MAX];
    size_t address_count;
    char master[RD_TEXT_MAX]; /* RD_SENTINEL: what the sentinels call it */
    char user[RD_TEXT_MAX];   /* "" is Redis' default user               */
    char password[RD_TEXT_MAX];
    bool has_password;
    unsigned db;
    char prefix[RD_PREFIX_MAX];
    int64_t max_ttl_ms;
    int64_t node_timeout_ms; /* RD_REDLOCK: how long one node may take to answer */
    bool tls;
    bool readonly; /* set by who opens: nothing is put on record at the server */
    bool verify;
    char ca[RD_TEXT_MAX];
    char cert[RD_TEXT_MAX];
    char key[RD_TEXT_MAX];
    char password_file[RD_TEXT_MAX];
    char sentinel_user[RD_TEXT_MAX]; /* "" is the sentinels' default user */
    char sentinel_password[RD_TEXT_MAX];
    char sentinel_password_file[RD_TEXT_MAX];
    char shown[RD_TEXT_MAX]; /* without the password: for error texts */
};

/* Takes text apart. HF_OK or HF_INVALID. Reads neither files nor the environment. */
enum hf_status rd_url_parse(const char *text, struct rd_url *out, struct hf_error *err);
/* Passwords that the URL does not have: from their files, else from the environment. HF_OK,
 * HF_INVALID (no such file, empty, too long) or HF_DENIED. */
enum hf_status rd_url_find_password(struct rd_url *url, struct hf_error *err);
/* "host" or "host:port" or "[::1]:port"; false if it is none. */
bool rd_address_parse(const char *text, size_t len, unsigned default_port, struct rd_address *out);
bool rd_address_equal(const struct rd_address *a, const struct rd_address *b);

#endif /* HF_STORES_REDIS_URL_H */
