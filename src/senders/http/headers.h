/* headers.h - the headers of a request: a message's own, which are a JSON object, and ours. Pure.
 */
#ifndef HF_SENDERS_HTTP_HEADERS_H
#define HF_SENDERS_HTTP_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

enum { HEADERS_NAME_MAX = 128, HEADERS_VALUE_MAX = 8192 };

/* False: stop. */
typedef bool headers_fn(const char *name, const char *value, void *data);

/* Calls fn for each member of the object; its values are texts. False: one that cannot be sent, or
 * fn said so; why says which. A name is a token of HTTP, and none that means something to the relay
 * or to the connection; a value is printable, as UTF-8. */
bool headers_read(const char *object, headers_fn *fn, void *data, char *why, size_t size);

/* A text as a value: what is not visible ASCII, and '%', as %XX. */
void headers_encode(char *out, size_t size, const char *text);

#endif /* HF_SENDERS_HTTP_HEADERS_H */
