/* holdfast/record.h - what a holder leaves behind beside its lock, for those who come later.
 *
 * A lock has a few records, each under a key of its own. Anybody may read them; only the holder
 * writes, and the store checks that in the same atomic step. They stay when the
 * lock is released. */
#ifndef HOLDFAST_RECORD_H
#define HOLDFAST_RECORD_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HF_RECORD_KEY_MAX = 64,     /* bytes in a key; at least 1, no control characters */
    HF_RECORD_VALUE_MAX = 65536 /* bytes in a value: any bytes, or none at all */
};
#define HF_RECORD_KEEP_MAX_MS (100LL * 365 * 86400 * 1000) /* whoever wants longer wants for ever */

/* One record as a reader sees it. What it points to lives until the callback
 * returns, or hf_record_free is called. */
struct hf_record {
    size_t size; /* of the struct as the library knows it */
    const char *key;
    const void *value; /* never NULL; a NUL that does not count follows it */
    size_t value_len;
    uint64_t token;     /* of the hold that wrote it */
    uint64_t number;    /* which write of that hold it was; (token, number) only ever rises */
    int64_t written_ms; /* when, by the store's clock, in ms since 1970 */
    int64_t until_ms;   /* until when it is kept, by the same clock; 0: for ever */
};
/* Return false to stop a listing. */
typedef bool hf_record_fn(const struct hf_record *record, void *data);

/* hf_record_put - write a record of a lock that is held, in place of the one with that key.
 *
 * keep_ms: how long it is kept from now on; 0: for ever. The store writes only while the lock is
 * held there by this lease, and only what is newer than what it has: a copy of an earlier write
 * that comes late changes nothing. So a write that got no answer is sent again, and what became of
 * it is settled by reading, as long as the lease lasts and for its ttl at most. The keeper keeps
 * renewing meanwhile. Threads that put with one lease take turns.
 *
 * HF_OK           it is on record. If err has a text all the same, that is a warning: the store
 *                 may lose the record (a Redis without an append-only file, a replica that has not
 *                 confirmed it). A program that relies on records shows it to the user
 * HF_LOST         the lock is not held any more: nothing was written
 * HF_UNKNOWN      no answer to the end of the lease: it may be on record; hf_record_get finds out
 * HF_UNREACHABLE  no server answers: nothing was written
 * HF_INVALID      a bad key, a value that is too long, a keep_ms below 0 or above
 *                 HF_RECORD_KEEP_MAX_MS, a forked child
 * HF_UNSUPPORTED  this kind of store keeps no records
 * HF_DENIED, HF_CORRUPT, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_record_put(struct hf_lease *lease, const char *key,
                                                  const void *value, size_t value_len,
                                                  int64_t keep_ms, struct hf_error *err);

/* hf_record_get - read the record of lock name with that key.
 *
 * *out becomes the record, which the caller ends with hf_record_free; NULL if there is none, or
 * none any more. now_ms, if it is not NULL, becomes the store's clock in ms since 1970 (in whole
 * seconds only from etcd), even if there is no record. Nothing is taken, waited for or changed; a
 * store that was opened read-only serves. HF_OK, HF_UNSUPPORTED, HF_UNREACHABLE, HF_UNKNOWN,
 * HF_DENIED, HF_CORRUPT: this record is damaged, HF_INVALID, HF_NOMEM. */
HF_API HF_MUST_CHECK enum hf_status hf_record_get(struct hf_store *store, const char *name,
                                                  const char *key, struct hf_record **out,
                                                  int64_t *now_ms, struct hf_error *err);

/* Takes NULL. Only for what hf_record_get made. */
HF_API void hf_record_free(struct hf_record *record);

/* hf_record_list - call fn for each record of lock name whose key starts with prefix (NULL or "":
 * all), in no particular order. Must not call back into the store from fn. As hf_record_get. */
HF_API HF_MUST_CHECK enum hf_status hf_record_list(struct hf_store *store, const char *name,
                                                   const char *prefix, hf_record_fn *fn, void *data,
                                                   struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_RECORD_H */
