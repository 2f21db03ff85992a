/* request.h - writing commands the way Redis reads them. */
#ifndef HF_STORES_REDIS_WIRE_REQUEST_H
#define HF_STORES_REDIS_WIRE_REQUEST_H

#include <holdfast.h>

enum { RD_REQUEST_MAX_BYTES = 8 << 20 }; /* of one pipeline */

/* One command or several, ready to be sent. Starts zeroed; rd_request_release frees. */
struct rd_request {
    char *data;
    size_t len;
    size_t capacity;
    bool failed; /* out of memory or too long: it must not be sent */
};

void rd_request_release(struct rd_request *request);
/* Empties it for reuse; what it held (it may be a password) is wiped. */
void rd_request_clear(struct rd_request *request);
/* Begins a command of count words; count calls of rd_request_word have to follow. */
void rd_request_begin(struct rd_request *request, size_t count);
void rd_request_word(struct rd_request *request, const char *word);
/* A word that may hold any bytes. */
void rd_request_bytes(struct rd_request *request, const void *data, size_t len);
/* Bytes as they are: what is collected to become a word of another request. */
void rd_request_raw(struct rd_request *request, const void *data, size_t len);
void rd_request_number(struct rd_request *request, int64_t number);
/* A whole command of plain words; the list ends with NULL. */
void rd_request_command(struct rd_request *request, const char *const *words);

#endif /* HF_STORES_REDIS_WIRE_REQUEST_H */
