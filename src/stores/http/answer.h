/* answer.h - what an answer of the server says. Pure. */
#ifndef HF_STORES_HTTP_ANSWER_H
#define HF_STORES_HTTP_ANSWER_H

#include <cjson/cJSON.h>
#include <holdfast/store.h>

enum {
    HT_LINE_MAX = 16 << 10, /* bytes of a line of a stream */
    HT_DEPTH_MAX = 4        /* of brackets in brackets; cJSON's own limit is higher */
};

/* "HF_BUSY". False: it is the name of no status. */
bool ht_status(const char *name, enum hf_status *out);

/* An object; NULL: it is none. */
cJSON *ht_parse(const char *text, size_t len);
/* Members; the default if it is not there, or of another type or out of range. */
const char *ht_text(const cJSON *object, const char *name, const char *otherwise);
int64_t ht_number(const cJSON *object, const char *name, int64_t otherwise);
bool ht_flag(const cJSON *object, const char *name);
/* "token", which is a string of digits; 0: there is none. */
uint64_t ht_token(const cJSON *object);
enum hf_loss ht_loss(const cJSON *object);
/* The bits of "features" that are known here. */
unsigned ht_features(const cJSON *object);

/* What a grant says. sent_at_ns is when our request left, now_ns is now. False: it makes no
 * sense. */
bool ht_granted(const cJSON *object, int64_t sent_at_ns, int64_t now_ns, struct hf_grant *out);

/* An error as the server told it: *err, and its status; that the server gave up waiting is
 * HF_UNREACHABLE. lock and shown are for one without words. */
enum hf_status ht_problem(const cJSON *object, enum hf_status status, const char *lock,
                          const char *shown, struct hf_error *err);

#endif /* HF_STORES_HTTP_ANSWER_H */
