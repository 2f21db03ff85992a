/* url.h - what an etcd URL says.
 *
 *   etcd://[user[:password]@]host[:port][,host...][?options]
 *
 * Options: prefix, tls=on|off, ca, cert, key, verify=on|off, password_file. TLS is on if one of ca,
 * cert and key is given; tls=off cannot be used with them. */
#ifndef HF_STORES_ETCD_URL_H
#define HF_STORES_ETCD_URL_H

#include "base/url.h"
#include "http/http.h"

enum {
    EC_PORT_DEFAULT = 2379,
    EC_ENDPOINT_MAX = HF__HOST_MAX + 24, /* bytes of "https://[host]:port", NUL included */
    EC_PREFIX_MAX = 101                  /* bytes of the prefix, likewise */
};

#define EC_PREFIX_DEFAULT    "holdfast/"
#define EC_PASSWORD_VARIABLE "HOLDFAST_ETCD_PASSWORD"

struct ec_url {
    struct hf__url common;
    char endpoints[HF__HOSTS_MAX][EC_ENDPOINT_MAX]; /* its hosts, as libcurl wants them */
    char prefix[EC_PREFIX_MAX];
    bool tls;
    bool plain; /* tls=off was said */
    bool verify;
    char ca[HF__URL_TEXT_MAX];
    char cert[HF__URL_TEXT_MAX];
    char key[HF__URL_TEXT_MAX];
    char password_file[HF__URL_TEXT_MAX];
};

/* Takes text apart. HF_OK or HF_INVALID. Reads neither files nor the environment. */
enum hf_status ec_url_parse(const char *text, struct ec_url *out, struct hf_error *err);
/* If there is a user and no password: from password_file, else from the environment. And checks
 * that the files of certificates can be read. HF_OK, HF_INVALID or HF_DENIED. */
enum hf_status ec_url_find_secrets(struct ec_url *url, struct hf_error *err);
/* How to connect; its strings are the URL's. */
void ec_url_options(const struct ec_url *url, struct hf__http_options *out);

#endif /* HF_STORES_ETCD_URL_H */
