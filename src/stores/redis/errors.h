/* errors.h - what an error reply means. Pure.
 *
 * Each of these is an answer, so the server did not silently act: those marked (again) prove that
 * the request was not executed and may be sent once more. */
#ifndef HF_STORES_REDIS_ERRORS_H
#define HF_STORES_REDIS_ERRORS_H

#include "stores/redis/url.h"

enum rd_verdict {
    RD_NOSCRIPT,    /* (again) the script has to be loaded first          */
    RD_MOVED,       /* (again) another node of the cluster has the slot   */
    RD_ASK,         /* (again) another node has it this once              */
    RD_TRYAGAIN,    /* (again) the slot is on the move                    */
    RD_LOADING,     /* (again) the server reads its data                  */
    RD_READONLY,    /* (again) a replica                                  */
    RD_BUSY_SCRIPT, /* another script runs for too long                   */
    RD_OOM,         /* above maxmemory                                    */
    RD_MISCONF,     /* cannot write its snapshots                         */
    RD_NOREPLICAS,  /* too few replicas                                   */
    RD_DOWN,        /* CLUSTERDOWN, MASTERDOWN                            */
    RD_NOPERM,      /* the ACL does not allow it                          */
    RD_NOAUTH,      /* password missing or wrong                          */
    RD_WRONGTYPE,   /* the key is something else                          */
    RD_CROWDED,     /* no room for another client: said before any request */
    RD_PROTECTED,   /* talks to its own machine only                      */
    RD_OTHER_ERROR
};

enum rd_verdict rd_verdict(const char *error);
/* The server named by a MOVED or ASK error; *slot as it says. An empty host means the one we asked.
 */
bool rd_verdict_address(const char *error, struct rd_address *out, unsigned *slot);
/* The server's own words, fit for a terminal, without the arguments that it may quote: a password
 * or an owner could be among them. */
enum { RD_QUOTE_MAX = 111 };
void rd_verdict_quote(char out[RD_QUOTE_MAX], const char *error);
/* Fills *err for a request about the lock (NULL: none) that was answered so; returns its status. */
enum hf_status rd_verdict_fail(const char *error, const char *lock, const char *store,
                               struct hf_error *err);

#endif /* HF_STORES_REDIS_ERRORS_H */
