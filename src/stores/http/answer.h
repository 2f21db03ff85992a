/* answer.h - what an answer of the server says. Pure. */
#ifndef HF_STORES_HTTP_ANSWER_H
#define HF_STORES_HTTP_ANSWER_H

#include <cjson/cJSON.h>
#include <holdfast/store.h>

enum {
    HT_LINE_MAX = 16 << 10, /* bytes of a line of a stream */
    HT_DEPTH_MAX = 4        /* of brackets in brackets; cJSON's own limit is higher */
};

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

#endif /* HF_STORES_HTTP_ANSWER_H */
