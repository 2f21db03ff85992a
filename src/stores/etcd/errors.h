/* errors.h - what an error of etcd means, in a status and a sentence. Pure. */
#ifndef HF_STORES_ETCD_ERRORS_H
#define HF_STORES_ETCD_ERRORS_H

#include <holdfast.h>

enum ec_verdict {
    EC_FINE,         /* no error */
    EC_UNSURE,       /* it may have been executed, now or later */
    EC_LATER,        /* it was not executed; another server or moment may do it */
    EC_SIGN_IN,      /* it was not executed; the auth token is missing, old or not valid */
    EC_NO_AUTH,      /* authentication is not switched on */
    EC_WRONG_USER,   /* wrong user or password */
    EC_FORBIDDEN,    /* the user's roles do not allow it */
    EC_NO_LEASE,     /* not executed: the lease is gone */
    EC_LEASE_EXISTS, /* not executed: a lease has that id */
    EC_FULL,         /* not executed: the database has reached its quota */
    EC_DAMAGED,      /* the cluster says that it is corrupt */
    EC_NO_GATEWAY,   /* whoever answers does not know the v3 JSON API */
    EC_WANTS_TLS,    /* not executed: plain HTTP to a port with TLS */
    EC_TOO_LONG,     /* the answer is longer than we take */
    EC_REFUSED       /* not executed, for a reason that only helps a person */
};

/* From the HTTP status, the gRPC code and the message of an answer; code 0 means none. */
enum ec_verdict ec_verdict(long http_status, int64_t code, const char *message);

/* The error for a person: `lock "X" in store Y: WHAT`. Of store, the URL as it may be shown; lock
 * may be NULL. */
enum hf_status ec_fail(const char *lock, const char *store, enum hf_status status, const char *what,
                       struct hf_error *err);
/* The same for a verdict on an answer, which had that message. */
enum hf_status ec_verdict_fail(enum ec_verdict verdict, const char *message, const char *lock,
                               const char *store, struct hf_error *err);
/* An answer that etcd would not give. */
enum hf_status ec_nonsense(const char *lock, const char *store, struct hf_error *err);
/* A hold that is over: HF_LOST. */
enum hf_status ec_lost(const char *lock, const char *store, enum hf_loss loss,
                       struct hf_error *err);
/* An attempt whose fate is not known: HF_UNKNOWN. */
enum hf_status ec_perhaps_taken(const char *lock, const char *store, struct hf_error *err);

#endif /* HF_STORES_ETCD_ERRORS_H */
