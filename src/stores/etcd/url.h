/* url.h - what an etcd URL says.
 *
 *   etcd://[user[:password]@]host[:port][,host...][?options]
 *
 * Options: prefix, tls=on|off, ca, cert, key, verify=on|off, password_file. TLS is on if one of ca,
 * cert and key is given; tls=off does not go with them. */
#ifndef HF_STORES_ETCD_URL_H
#define HF_STORES_ETCD_URL_H

#include <holdfast.h>

enum {
    EC_ENDPOINTS_MAX = 16,
    EC_PORT_DEFAULT = 2379,
    EC_ENDPOINT_MAX = 280, /* bytes of "https://host:port", NUL included    */
    EC_TEXT_MAX = 512,     /* bytes of user, password, file names, likewise */
    EC_PREFIX_MAX = 101    /* bytes of the prefix, likewise                 */
};

#define EC_PREFIX_DEFAULT    "holdfast/"
#define EC_PASSWORD_VARIABLE "HOLDFAST_ETCD_PASSWORD"

struct ec_url {
    char endpoints[EC_ENDPOINTS_MAX][EC_ENDPOINT_MAX]; /* as libcurl wants them */
    size_t endpoint_count;
    char prefix[EC_PREFIX_MAX];
    bool tls;
    bool plain; /* tls=off was said */
    bool verify;
    char user[EC_TEXT_MAX]; /* "": no authentication */
    char password[EC_TEXT_MAX];
    bool has_password;
    char ca[EC_TEXT_MAX];
    char cert[EC_TEXT_MAX];
    char key[EC_TEXT_MAX];
    char password_file[EC_TEXT_MAX];
    char shown[EC_TEXT_MAX]; /* without the password: for error texts */
};

/* Takes text apart. HF_OK or HF_INVALID. Reads neither files nor the environment. */
enum hf_status ec_url_parse(const char *text, struct ec_url *out, struct hf_error *err);
/* If there is a user and no password: from password_file, else from the environment. And checks
 * that the files of certificates can be read. HF_OK, HF_INVALID or HF_DENIED. */
enum hf_status ec_url_find_secrets(struct ec_url *url, struct hf_error *err);

#endif /* HF_STORES_ETCD_URL_H */
