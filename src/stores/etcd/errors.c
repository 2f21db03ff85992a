/* errors.c - what an error of etcd means. The words are those of etcd's rpctypes, which are part
 * of its API. Whatever is not known to have been refused is unsure. */
#include "stores/etcd/errors.h"
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

static const enum ec_verdict codes[] = {
    [CODE_INVALID] = EC_REFUSED,      [CODE_NOT_FOUND] = EC_REFUSED,
    [CODE_DENIED] = EC_FORBIDDEN,     [CODE_PRECONDITION] = EC_REFUSED,
    [CODE_OUT_OF_RANGE] = EC_REFUSED, [CODE_UNIMPLEMENTED] = EC_NO_GATEWAY,
    [CODE_DATA_LOSS] = EC_DAMAGED,    [CODE_UNAUTHENTICATED] = EC_SIGN_IN,
};

static enum ec_verdict by_code(int64_t code)
{
    if (code < 0 || code >= (int64_t)(sizeof codes / sizeof *codes) || codes[code] == EC_FINE)
        return EC_UNSURE;
    return codes[code];
}

/* What a verdict is to a person. Those that are missing are not known any better. */
static const struct {
    enum hf_status status; /* HF_OK: missing */
    bool quote;            /* the server's own words go behind it */
    const char *sentence;
} sentences[] = {
    [EC_UNSURE] = {HF_UNREACHABLE, true, "etcd cannot serve now: "},
    [EC_LATER] = {HF_UNREACHABLE, true, "etcd cannot serve now: "},
    [EC_SIGN_IN] = {HF_DENIED, false,
                    "the server needs a user and a password: write etcd://USER@HOST and "
                    "set " EC_PASSWORD_VARIABLE},
    [EC_WRONG_USER] = {HF_DENIED, false,
                       "wrong user or password; check the URL, " EC_PASSWORD_VARIABLE
                       " or password_file="},
    [EC_FORBIDDEN] = {HF_DENIED, false,
                      "the user lacks a role with readwrite permission on the prefix "
                      "(holdfast-etcd(7))"},
    [EC_FULL] = {HF_UNREACHABLE, false,
                 "etcd's database is full: compact it, defragment, and disarm the alarm"},
    [EC_DAMAGED] = {HF_CORRUPT, false, "etcd says that the cluster is corrupt; see its log"},
    [EC_NO_GATEWAY] = {HF_UNSUPPORTED, false,
                       "what answers there has no v3 JSON gateway; etcd 3.4 or later has, "
                       "unless --enable-grpc-gateway=false"},
    [EC_WANTS_TLS] = {HF_UNREACHABLE, false, "the server speaks TLS: add tls=on or ca="},
    [EC_REFUSED] = {HF_UNSUPPORTED, true, "the server says: "},
};

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

enum hf_status ec_fail(const char *lock, const char *store, enum hf_status status, const char *what,
                       struct hf_error *err)
{
    return hf__fail_lock(err, status, lock, store, ": %s", what);
}

enum hf_status ec_verdict_fail(enum ec_verdict verdict, const char *message, const char *lock,
                               const char *store, struct hf_error *err)
{
    enum ec_verdict known = sentences[verdict].status != HF_OK ? verdict : EC_REFUSED;
    char what[200];

    (void)snprintf(what, sizeof what, "%s%.*s", sentences[known].sentence,
                   sentences[known].quote ? QUOTE_MAX : 0, message);
    return ec_fail(lock, store, sentences[known].status, what, err);
}

enum hf_status ec_nonsense(const char *lock, const char *store, struct hf_error *err)
{
    return ec_fail(lock, store, HF_UNSUPPORTED,
                   "etcd's answer makes no sense; is it etcd 3.4 or later?", err);
}

enum hf_status ec_perhaps_taken(const char *lock, const char *store, struct hf_error *err)
{
    return ec_fail(lock, store, HF_UNKNOWN,
                   "etcd did not answer; it may have been taken, and is free after its ttl at the "
                   "latest",
                   err);
}

enum hf_status ec_lost(const char *lock, const char *store, enum hf_loss loss, struct hf_error *err)
{
    return hf__fail_lock(err, HF_LOST, lock, store, " was lost: %s", hf_loss_text(loss));
}
