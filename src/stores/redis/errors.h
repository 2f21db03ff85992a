/* errors.h - what an error reply means. Pure.
 *
 * Each of these is an answer, so the server did not silently act: those marked (again) prove that
 * the request was not executed and may be sent once more. */
#ifndef HF_STORES_REDIS_ERRORS_H
#define HF_STORES_REDIS_ERRORS_H

#include "stores/redis/keys.h"
#include "stores/redis/wire/reply.h"
#include <holdfast/store.h>

enum rd_verdict {
    RD_NOSCRIPT,    /* (again) the script has to be loaded first */
    RD_MOVED,       /* (again) another node of the cluster has the slot */
    RD_ASK,         /* (again) another node has it this once */
    RD_TRYAGAIN,    /* (again) the slot is on the move */
    RD_LOADING,     /* (again) the server reads its data */
    RD_READONLY,    /* (again) a replica */
    RD_BUSY_SCRIPT, /* another script runs for too long */
    RD_OOM,         /* above maxmemory */
    RD_MISCONF,     /* cannot write its snapshots */
    RD_NOREPLICAS,  /* too few replicas */
    RD_DOWN,        /* CLUSTERDOWN, MASTERDOWN */
    RD_NOPERM,      /* the ACL does not allow it */
    RD_NOAUTH,      /* password missing or wrong */
    RD_WRONGTYPE,   /* the key is something else */
    RD_CROWDED,     /* no room for another client: said before any request */
    RD_PROTECTED,   /* talks to its own machine only */
    RD_OTHER_ERROR
};

enum rd_verdict rd_verdict(const char *error);
/* The server named by a MOVED or ASK error; *slot as it says. An empty host means the
 * one we asked. */
bool rd_verdict_address(const char *error, struct hf__address *out, unsigned *slot);
/* The server's own words, fit for a terminal, without the arguments that it may quote: a password
 * or an owner could be among them. */
enum { RD_QUOTE_MAX = 111 };
void rd_verdict_quote(char out[RD_QUOTE_MAX], const char *error);
/* Fills *err for a request about the lock (NULL: none) that was answered so; returns its status. */
enum hf_status rd_verdict_fail(const char *error, const char *lock, const char *store,
                               struct hf_error *err);

/* The same for an answer to AUTH or SELECT. */
enum hf_status rd_greeting_refused(const char *error, const char *store, struct hf_error *err);
/* HF_OK, or HF_INVALID: the claim's ttl is above max_ttl. */
enum hf_status rd_check_ttl(const struct rd_url *url, const struct hf_claim *claim,
                            struct hf_error *err);
/* Who broke a hold: the three items of an answer from index at on. */
void rd_revocation_take(const struct rd_reply *reply, size_t at, struct hf_revocation *out);
/* HF_LOST with its text and grant->loss (grant may be NULL), from {'lost', why}. */
enum hf_status rd_lost(const struct rd_url *url, const char *name, const struct rd_reply *reply,
                       struct hf_grant *grant, struct hf_error *err);
/* HF_CORRUPT with its text, from {'corrupt', 'record' or 'clock'}: no token follows. */
enum hf_status rd_corrupt(const struct rd_url *url, const char *name, const struct rd_keys *keys,
                          const struct rd_reply *reply, struct hf_error *err);
/* Passes on what was said, HF_OK too; err may be NULL. */
enum hf_status rd_pass(struct hf_error *err, const struct hf_error *said);
/* An answer that makes no sense. */
enum hf_status rd_nonsense(const struct rd_url *url, const char *name, struct hf_error *err);

#endif /* HF_STORES_REDIS_ERRORS_H */
