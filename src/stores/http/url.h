/* url.h - what the URL of a server says.
 *
 *   http://host[:port][/path]      https://host[:port][/path][?options]
 *   http+unix:///path/of/socket
 *
 * Options, for https: ca, cert, key, verify=on|off. What a path says is put before that of every
 * request, for a proxy that has the server below a path. */
#ifndef HF_STORES_HTTP_URL_H
#define HF_STORES_HTTP_URL_H

#include "base/url.h"
#include "http/http.h"

#define HT_TOKEN_VARIABLE "HOLDFAST_HTTP_TOKEN_FILE"

enum { HT_ENDPOINT_MAX = HF__HOST_MAX + 24 + HF__URL_TEXT_MAX };

struct ht_url {
    struct hf__url common;
    char endpoint[HT_ENDPOINT_MAX]; /* as libcurl wants it, with the path in front of all others */
    char socket[HF__HOST_MAX];      /* http+unix: its path; else "" */
    bool tls;
    bool verify;
    char ca[HF__URL_TEXT_MAX];
    char cert[HF__URL_TEXT_MAX];
    char key[HF__URL_TEXT_MAX];
    char auth[HF__HTTP_AUTH_MAX]; /* "Bearer SECRET"; "": none */
};

/* Takes text apart. HF_OK or HF_INVALID. Reads neither files nor the environment. */
enum hf_status ht_url_parse(const char *text, struct ht_url *out, struct hf_error *err);
/* Reads the secret from the file that the environment names, if it does, and looks for the files of
 * certificates. HF_OK, with a text if the secret will be there for everybody to read; HF_INVALID or
 * HF_DENIED. */
enum hf_status ht_url_find_secrets(struct ht_url *url, struct hf_error *err);
/* How to connect; its strings are the URL's. */
void ht_url_options(const struct ht_url *url, struct hf__http_options *out);

#endif /* HF_STORES_HTTP_URL_H */
