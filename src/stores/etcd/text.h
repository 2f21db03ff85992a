/* text.h - the JSON that is sent to etcd, put together piece by piece.
 *
 * A request is small as a rule and its parts are of bounded length, so it is built in a fixed
 * buffer, or in a larger one of the caller's. What does not fit sets `cut`, and a cut request is
 * never sent. */
#ifndef HF_STORES_ETCD_TEXT_H
#define HF_STORES_ETCD_TEXT_H

#include <holdfast.h>

enum { EC_REQUEST_MAX = 16384 }; /* bytes of a request's body */

struct ec_text {
    char *data; /* NUL-terminated: in room, or in the caller's buffer */
    size_t size;
    size_t len;
    bool cut;
    char room[EC_REQUEST_MAX];
};

/* A stretch of keys: one key if end is NULL, else from key up to but not including end. */
struct ec_range {
    const char *key;
    size_t key_len;
    const char *end;
    size_t end_len;
};

enum ec_order { EC_OLDEST_FIRST, EC_NEWEST_FIRST, EC_BY_KEY };

void ec_text_clear(struct ec_text *text);
/* The same in a buffer of the caller's, which has to outlive text. NULL: in its own. */
void ec_text_clear_in(struct ec_text *text, char *buffer, size_t size);
void ec_text_add(struct ec_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "..." with the data in base64. */
void ec_text_base64(struct ec_text *text, const void *data, size_t len);
/* "..." with what JSON wants escaped. */
void ec_text_string(struct ec_text *text, const char *string);

/* A transaction: begin, compares, then, operations, otherwise, operations, end. */
void ec_txn_begin(struct ec_text *text);
/* The same in a buffer of the caller's, which has to outlive text. NULL: in its own. */
void ec_txn_begin_in(struct ec_text *text, char *buffer, size_t size);
/* One as an operation of another: the same between these two. */
void ec_txn_nest(struct ec_text *text);
void ec_txn_unnest(struct ec_text *text);
/* Every key of the range was created at ("EQUAL") or after ("GREATER") revision; an empty range
 * counts as one key of revision 0. target is "CREATE" or "MOD"; or "LEASE", for the lease it is on,
 * with "EQUAL". */
void ec_txn_compare(struct ec_text *text, const struct ec_range *range, const char *target,
                    const char *result, uint64_t number);
/* The value of the key is below ("LESS") or above ("GREATER") that, byte by byte. Never true of a
 * key that is not there. */
void ec_txn_compare_value(struct ec_text *text, const struct ec_range *key, const char *result,
                          const char *value, size_t len);
/* The value of the key starts with that word and a space. */
void ec_txn_compare_word(struct ec_text *text, const struct ec_range *key, const char *word);
void ec_txn_then(struct ec_text *text);
void ec_txn_otherwise(struct ec_text *text);
void ec_txn_put(struct ec_text *text, const struct ec_range *key, const char *value, int64_t lease);
/* The same with a value of any bytes; lease 0: on none. */
void ec_txn_put_bytes(struct ec_text *text, const struct ec_range *key, const void *value,
                      size_t len, int64_t lease);
/* before: only keys created before that revision; 0: all. limit 0: no limit. */
void ec_txn_range(struct ec_text *text, const struct ec_range *range, enum ec_order order,
                  unsigned limit, uint64_t before);
/* tell_old: the answer has what was deleted. */
void ec_txn_delete(struct ec_text *text, const struct ec_range *key, bool tell_old);
void ec_txn_end(struct ec_text *text);

/* The inside of a range request, without the braces. */
void ec_text_range(struct ec_text *text, const struct ec_range *range);

#endif /* HF_STORES_ETCD_TEXT_H */
