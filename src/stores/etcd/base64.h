/* base64.h - the form in which etcd's JSON carries keys and values (RFC 4648, padded). */
#ifndef HF_STORES_ETCD_BASE64_H
#define HF_STORES_ETCD_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that len bytes become, without a NUL. */
#define EC_BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes EC_BASE64_LEN(len) characters; no NUL. Returns how many. */
size_t ec_base64_encode(char *out, const void *data, size_t len);
/* The reverse, into at most size bytes. False for anything that is not exactly such a text, or if
 * it does not fit. */
bool ec_base64_decode(void *out, size_t size, const char *text, size_t *out_len);
/* The same; of a text that does not fit in whole groups of three bytes only the first size / 3 of
 * these, and *cut is set. */
bool ec_base64_decode_start(void *out, size_t size, const char *text, size_t *out_len, bool *cut);

#endif /* HF_STORES_ETCD_BASE64_H */
