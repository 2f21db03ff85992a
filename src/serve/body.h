/* body.h - the JSON of a request: one flat object, read without I/O. */
#ifndef HF_SERVE_BODY_H
#define HF_SERVE_BODY_H

#include <holdfast.h>

enum { BODY_FIELDS_MAX = 32 }; /* of one object, known or not */

/* What a body may say. */
enum {
    BODY_NAME = 1 << 0,
    BODY_OWNER = 1 << 1,
    BODY_TOKEN = 1 << 2,
    BODY_TTL_MS = 1 << 3,
    BODY_WAIT_MS = 1 << 4,
    BODY_LABEL = 1 << 5
};
struct body {
    unsigned given; /* BODY_ bits */
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    char label[HF_LABEL_MAX + 1]; /* printable, cut */
    uint64_t token;
    uint32_t ttl_ms;
    int64_t wait_ms;
};

/* Reads data[0..len). false: *why says in a sentence what is wrong: no JSON, not flat, no UTF-8, a
 * key that comes twice, a known field of another type or out of its range. Fields that are not
 * known are passed over. */
bool body_parse(const char *data, size_t len, struct body *out, const char **why);

#endif /* HF_SERVE_BODY_H */
