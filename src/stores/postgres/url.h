/* url.h - what a postgres:// URL says: a URI for libpq, and a few settings of ours. Pure. */
#ifndef HF_STORES_POSTGRES_URL_H
#define HF_STORES_POSTGRES_URL_H

#include <holdfast.h>

enum {
    PG_URL_MAX = 1024, /* bytes of a URL */
    PG_SHOWN_MAX = 256 /* of it without its secrets */
};

#define PG_MAX_TTL_DEFAULT_MS 60000

enum pg_listen {
    PG_LISTEN_AUTO, /* on the server itself; behind a pooler, not at all */
    PG_LISTEN_OFF,  /* ask every second instead */
    PG_LISTEN_URL   /* on another way to the same server */
};

struct pg_url {
    char uri[PG_URL_MAX];        /* for libpq; holds the password */
    char listen_uri[PG_URL_MAX]; /* likewise, with PG_LISTEN_URL */
    char shown[PG_SHOWN_MAX];    /* for people */
    enum pg_listen listen;
    int64_t max_ttl_ms;
};

/* Whether a password that was sent to this address (numeric; "": a Unix socket) may have been sent
 * to anybody: it is another machine, and nothing made sure that it is the right one. Values as
 * libpq has them; NULL: not set. */
bool pg_password_at_risk(const char *address, const char *sslmode, const char *channel_binding);

/* Takes our parameters (max_ttl, listen) out of url; the rest is libpq's. HF_OK or HF_INVALID. */
enum hf_status pg_url_parse(const char *url, struct pg_url *out, struct hf_error *err);

#endif /* HF_STORES_POSTGRES_URL_H */
