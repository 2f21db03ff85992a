/* url.h - store URLs, taken apart in one place:
 *
 *     scheme://user:password@host:port,host:port/path?option=value&option=value
 *
 * A store says which form its URLs have (hf__url_form: how they are written, the usual port, a
 * table of options) and hf__url_parse does the rest, errors included. What is special stays the
 * store's: it reads the path, and checks what options mean together. */
#ifndef HF_BASE_URL_H
#define HF_BASE_URL_H

#include <holdfast.h>
#include <stddef.h>

enum {
    HF__URL_MAX = 1024,     /* bytes of a store's URL, with the NUL */
    HF__URL_TEXT_MAX = 512, /* of a user, a password, a path, a file's name; likewise */
    HF__HOST_MAX = 256,     /* of a host's name or address; likewise */
    HF__HOSTS_MAX = 16      /* hosts of one URL */
};

/* Where a server listens. */
struct hf__address {
    char host[HF__HOST_MAX]; /* without brackets */
    unsigned port;
};

/* "host", "host:port" or "[::1]:port"; default_port if the text has none. False if it is none of
 * these or does not fit. */
bool hf__address_parse(const char *text, size_t len, unsigned default_port,
                       struct hf__address *out);
bool hf__address_equal(const struct hf__address *a, const struct hf__address *b);
/* A socket file, or a loopback address: no other machine is on the way. */
bool hf__address_is_local(const struct hf__address *address);
/* "host:port", or "[::1]:port"; false if it does not fit. */
bool hf__address_format(char *out, size_t size, const struct hf__address *address);

enum hf__url_type {
    HF__URL_TEXT,     /* into a char[] with room for max bytes and a NUL; min..max bytes */
    HF__URL_SWITCH,   /* "on" or "off", into a bool */
    HF__URL_DURATION, /* min..max milliseconds, into an int64_t */
    HF__URL_OWN       /* set does it */
};

/* One line of a store's table of options, which ends with a name of NULL. */
struct hf__url_option {
    const char *name;
    enum hf__url_type type;
    size_t offset; /* of the member in the store's struct */
    int64_t min, max;
    bool (*set)(void *into, const char *value); /* false: the value is wrong */
    bool (*fits)(const void *into);             /* NULL: always; false: not for this kind of URL */
};

#define HF__OPTION_TEXT(text, owner, member, min_len)                                              \
    {                                                                                              \
        .name = (text), .type = HF__URL_TEXT, .offset = offsetof(owner, member), .min = (min_len), \
        .max = sizeof((owner *)0)->member - 1                                                      \
    }
#define HF__OPTION_SWITCH(text, owner, member)                                                     \
    {                                                                                              \
        .name = (text), .type = HF__URL_SWITCH, .offset = offsetof(owner, member)                  \
    }
#define HF__OPTION_DURATION(text, owner, member, min_ms, max_ms)                                   \
    {                                                                                              \
        .name = (text), .type = HF__URL_DURATION, .offset = offsetof(owner, member),               \
        .min = (min_ms), .max = (max_ms)                                                           \
    }
#define HF__OPTION_OWN(text, setter)                                                               \
    {                                                                                              \
        .name = (text), .type = HF__URL_OWN, .set = (setter)                                       \
    }

/* Sets the members of *into that the options of a query ("a=b&c=d", decoded here; "" is none) name.
 * False: the first that is unknown or wrong is named in why, in a sentence. Of the query it shows
 * an unknown option's name only, and that only if it looks like one. */
bool hf__url_options(const char *query, const struct hf__url_option *options, void *into, char *why,
                     size_t size);

/* How the URLs of a store look. */
struct hf__url_form {
    const char *usage; /* "etcd://HOST:PORT,HOST:PORT": what to write */
    unsigned port;     /* of hosts that name none */
    const struct hf__url_option *options;
};

/* What every URL has. */
struct hf__url {
    char user[HF__URL_TEXT_MAX]; /* decoded; "": none */
    char password[HF__URL_TEXT_MAX];
    bool has_password;
    struct hf__address hosts[HF__HOSTS_MAX];
    unsigned host_count;          /* 0: the URL names none, which a store may refuse */
    char path[HF__URL_TEXT_MAX];  /* what follows the hosts, from the '/' on, not decoded; "" */
    char shown[HF__URL_TEXT_MAX]; /* without the password: for people */
};

/* Takes text, whose scheme is the store's, apart: *out gets what every URL has, *into (the store's
 * own struct, with its defaults in place) what the options say. HF_OK; HF_INVALID: err says what to
 * write. *out may be part of *into; its shown is good in both cases. Reads neither files nor the
 * environment. */
enum hf_status hf__url_parse(const char *text, const struct hf__url_form *form, struct hf__url *out,
                             void *into, struct hf_error *err);

/* The pieces: url.c */

/* Points at the text after "scheme:", or NULL if url has another scheme or none. */
const char *hf__url_rest(const char *url, const char *scheme);
/* The scheme's length, 0 if url does not start with one ([a-z][a-z0-9+.-]*:). */
size_t hf__url_scheme_len(const char *url);
/* Percent-decodes in place. False for a malformed escape or an escaped NUL. */
bool hf__url_decode(char *text);
/* Copies len bytes of text, percent-decoded. False if they do not fit, or as hf__url_decode. */
bool hf__url_copy(char *out, size_t size, const char *text, size_t len);
/* "host", "host:port" or "[::1]:port", the host without its brackets; port stays as it is if the
 * text has none. False if it is none of these or does not fit. */
bool hf__url_host(const char *text, size_t len, char *host, size_t size, unsigned *port);
/* "user", "user:password" or ":password", decoded, each with room for size bytes. False if one does
 * not fit, or as hf__url_decode. */
bool hf__url_user(const char *text, size_t len, char *user, char *password, size_t size,
                  bool *has_password);
/* Percent-encodes everything but unreserved characters; false if it does not fit. */
bool hf__url_encode(char *out, size_t size, const char *text);
/* Calls fn(key, value, data) for each "key=value" of a query string (without '?'), decoded. Stops
 * and returns false when fn does, or on a malformed escape. Keys and values of up to 1 KiB. */
typedef bool hf__url_param_fn(const char *key, const char *value, void *data);
bool hf__url_params(const char *query, hf__url_param_fn *fn, void *data);

/* URLs in texts: redact.c */

/* Writes url without the password of its authority and without values of query parameters whose
 * name speaks of a password; cut at size. */
void hf__url_redact(char *out, size_t size, const char *url);
/* The same up to the hosts, for what is said about a URL that makes no sense: nobody knows what the
 * rest of it was meant to be. */
void hf__url_brief(char *out, size_t size, const char *url);
/* False if it is not certain where the password ends: user name or password have a '/', '?' or '#'
 * in them, or there is an '@' behind the hosts and a colon somewhere before it. */
bool hf__url_is_clear(const char *url);

#endif /* HF_BASE_URL_H */
