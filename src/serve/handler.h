/* handler.h - what the handlers of locks have in common. */
#ifndef HF_SERVE_HANDLER_H
#define HF_SERVE_HANDLER_H

#include "serve/body.h"
#include "serve/serve.h"

/* Reads the body, which must have the fields of need, and checks the right to lock its name. False:
 * the answer says why. */
bool handler_body(struct exchange *x, struct body *out, unsigned need);
/* Whether the server grants such a ttl. False: the answer says that it does not. */
bool handler_ttl_allowed(struct exchange *x, uint32_t ttl_ms);

/* HF_BUSY, with what is known of the holder. */
void handler_busy(struct exchange *x, const char *name, const struct hf_error *err);

/* "NAME/LABEL", cut. */
void handler_label(char out[HF_LABEL_MAX + 1], const char *name, const char *label);

/* valid_ms counts from the moment the client sent its request, which is not after read_at_ns.
 * after_ms: from there to the request that the store granted, rounded down. */
int64_t handler_after_ms(int64_t read_at_ns, int64_t sent_at_ns);
/* after_ms, less what the client's clock may be slow by, and what is left of the ttl, less
 * drift. */
int64_t handler_valid_ms(int64_t after_ms, int64_t left_ms, uint32_t ttl_ms);

#endif /* HF_SERVE_HANDLER_H */
