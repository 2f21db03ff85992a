/* holdfast/audit.h - what can be learned about a store without changing it: facts.
 *
 * Facts are what a store, its servers and this machine say about themselves; what they mean for a
 * lock is for somebody else to judge. `holdfast doctor` does. */
#ifndef HOLDFAST_AUDIT_H
#define HOLDFAST_AUDIT_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One fact. Strings are never NULL unless it is said, and live until the callback returns. */
struct hf_fact {
    size_t size;         /* of the struct as the library knows it */
    const char *key;     /* what it is about, a dot, and which fact: "redis.maxmemory_policy" */
    const char *value;   /* as text; "" if it is not known */
    const char *unit;    /* "ms", "us", "s", "bytes", "ppm"; "": none */
    const char *source;  /* how it was learned: "INFO memory" */
    const char *where;   /* which of several servers: "10.0.0.7:6379"; "": all of it */
    const char *unknown; /* NULL, or why it could not be determined */
};
/* Return false to stop the audit. Must not call into the store. */
typedef bool hf_fact_fn(const struct hf_fact *fact, void *data);

enum hf_audit_scope {
    HF_AUDIT_ALL,     /* everything; up to a second, since clocks are read twice */
    HF_AUDIT_DECISIVE /* what decides whether a fence can rely on the store; a few round trips */
};

struct hf_audit_options {
    size_t size; /* sizeof(struct hf_audit_options) */
    enum hf_audit_scope scope;
    uint32_t ttl_ms;  /* of the leases in question; 0: HF_TTL_DEFAULT_MS */
    int64_t limit_ms; /* how long it may take; 0: 5s. What is not known by then is not known */
};

/* hf_audit - call fn for each fact about the store that url names, and about this client.
 *
 * Needs no right beyond those that taking locks needs; what these do not show is reported as a fact
 * that is not known. Makes and changes nothing, even in a store that was never used. A store that
 * hf_open would refuse can be looked at all the same: a replica, one that is damaged. The first
 * fact about a store is "store.incarnation", where there is such a thing: two audits of one
 * incarnation report the same, unless somebody changed its settings. options: NULL means all
 * defaults. fn is called from this thread. Blocks for limit_ms at most, give or take the end of a
 * request.
 *
 * HF_OK           whatever could be learned was reported, even if fn stopped it
 * HF_UNREACHABLE  no server answers; some facts may have been reported
 * HF_DENIED       it denies access
 * HF_INVALID      the url is malformed
 * HF_UNSUPPORTED  no plugin for the scheme
 * HF_UNKNOWN, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_audit(const char *url,
                                             const struct hf_audit_options *options, hf_fact_fn *fn,
                                             void *data, struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_AUDIT_H */
