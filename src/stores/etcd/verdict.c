/* verdict.c - what an error of etcd means. The words are those of etcd's rpctypes, which are part
 * of its API. Whatever is not known to have been refused is unsure. */
#include "stores/etcd/verdict.h"
#include "base/base.h"
#include "stores/etcd/url.h"

#include <stdio.h>
#include <string.h>

#define QUOTE_MAX 90 /* bytes of the server's own words in an error text */

/* gRPC codes that only come before anything was done. */
enum {
    CODE_INVALID = 3,
    CODE_NOT_FOUND = 5,
    CODE_DENIED = 7,
    CODE_PRECONDITION = 9,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_DATA_LOSS = 15,
    CODE_UNAUTHENTICATED = 16
};

static const struct {
    const char *words;
    enum ec_verdict verdict;
} sayings[] = {
    {"invalid auth token", EC_SIGN_IN},
    {"auth: revision in header is old", EC_SIGN_IN},
    {"user name is empty", EC_SIGN_IN},
    {"authentication is not enabled", EC_NO_AUTH},
    {"authentication failed", EC_WRONG_USER},
    {"permission denied", EC_FORBIDDEN},
    {"requested lease not found", EC_NO_LEASE},
    {"lease already exists", EC_LEASE_EXISTS},
    {"database space exceeded", EC_FULL},
    {"too many requests", EC_LATER},
    {"etcdserver: no leader", EC_LATER},
    {"rpc not supported for learner", EC_LATER},
    {"corrupt cluster", EC_DAMAGED},
    {"HTTP request to an HTTPS server", EC_WANTS_TLS},
};

static enum ec_verdict by_code(int64_t code)
{
    switch (code) {
    case CODE_UNAUTHENTICATED:
        return EC_SIGN_IN;
    case CODE_DENIED:
        return EC_FORBIDDEN;
    case CODE_INVALID:
    case CODE_NOT_FOUND:
    case CODE_PRECONDITION:
    case CODE_OUT_OF_RANGE:
        return EC_REFUSED;
    case CODE_UNIMPLEMENTED:
        return EC_NO_GATEWAY;
    case CODE_DATA_LOSS:
        return EC_DAMAGED;
    default:
        return EC_UNSURE;
    }
}

enum ec_verdict ec_verdict(long http_status, int64_t code, const char *message)
{
    if (http_status == 200 && code == 0 && message[0] == '\0')
        return EC_FINE;
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++)
        if (strstr(message, sayings[i].words) != NULL)
            return sayings[i].verdict;
    if (code == 0 && (http_status == 404 || http_status == 405 || http_status == 501 ||
                      (http_status >= 300 && http_status < 400)))
        return EC_NO_GATEWAY;
    return by_code(code);
}

enum hf_status ec_verdict_fail(enum ec_verdict verdict, const char *message, const char *lock,
                               const char *store, struct hf_error *err)
{
    char about[150];

    if (lock != NULL)
        (void)snprintf(about, sizeof about, "lock \"%.50s\" in store %.70s", lock, store);
    else
        (void)snprintf(about, sizeof about, "store %.110s", store);
    switch (verdict) {
    case EC_SIGN_IN:
        return hf__fail(err, HF_DENIED,
                        "%s: the server wants a user and a password: write etcd://USER@HOST and "
                        "set " EC_PASSWORD_VARIABLE,
                        about);
    case EC_WRONG_USER:
        return hf__fail(err, HF_DENIED,
                        "%s: wrong user or password; check the URL, " EC_PASSWORD_VARIABLE
                        " or password_file=",
                        about);
    case EC_FORBIDDEN:
        return hf__fail(err, HF_DENIED,
                        "%s: the user lacks a role with readwrite permission on the prefix "
                        "(holdfast-etcd(7))",
                        about);
    case EC_FULL:
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: etcd's database is full: compact it, defragment, and disarm the alarm",
                        about);
    case EC_DAMAGED:
        return hf__fail(err, HF_CORRUPT, "%s: etcd says that the cluster is corrupt; see its log",
                        about);
    case EC_NO_GATEWAY:
        return hf__fail(err, HF_UNSUPPORTED,
                        "%s: what answers there has no v3 JSON gateway; etcd 3.4 or later has, "
                        "unless --enable-grpc-gateway=false",
                        about);
    case EC_WANTS_TLS:
        return hf__fail(err, HF_UNREACHABLE, "%s: the server speaks TLS: add tls=on or ca=", about);
    case EC_LATER:
    case EC_UNSURE:
        return hf__fail(err, HF_UNREACHABLE, "%s: etcd cannot serve now: %.*s", about, QUOTE_MAX,
                        message);
    case EC_FINE:
    case EC_TOO_LONG:
    case EC_NO_AUTH:
    case EC_NO_LEASE:
    case EC_LEASE_EXISTS:
    case EC_REFUSED:
        break;
    }
    return hf__fail(err, HF_UNSUPPORTED, "%s: the server says: %.*s", about, QUOTE_MAX, message);
}
