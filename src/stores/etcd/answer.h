/* answer.h - what etcd sends, taken apart: answers, errors, and the messages of a watch.
 *
 * 64-bit numbers come as strings, zero and false are left out, keys and values are base64. What is
 * missing reads as zero; nothing here trusts a length or a type. */
#ifndef HF_STORES_ETCD_ANSWER_H
#define HF_STORES_ETCD_ANSWER_H

#include "stores/etcd/layout.h"
#include <cjson/cJSON.h>

enum { EC_EVENT_MAX = 1 << 16 }; /* bytes of one message of a watch */

/* NULL if data is no JSON object. The caller ends it with cJSON_Delete. */
cJSON *ec_answer_parse(const char *data, size_t len);
/* Whether it has the header that every answer of etcd has. */
bool ec_answer_is_etcd(const cJSON *answer);
/* The number called name in object (a string or a JSON number); 0 if it is absent or none. */
int64_t ec_answer_number(const cJSON *object, const char *name);
/* header.revision */
uint64_t ec_answer_revision(const cJSON *answer);
/* header.cluster_id as text, "" if there is none. */
const char *ec_answer_cluster(const cJSON *answer);
bool ec_answer_succeeded(const cJSON *txn);
/* Key i of the list `kvs` in object; false if there is none, or it is not one of ours to read. */
bool ec_answer_kv(const cJSON *object, size_t i, struct ec_kv *out);
/* Its key alone, however long it is; cut: only its first bytes fit. */
bool ec_answer_key(const cJSON *object, size_t i, char *out, size_t size, size_t *len, bool *cut);
size_t ec_answer_kv_count(const cJSON *object);
/* A key with all of its value, both copied. */
struct ec_item {
    char *key;
    size_t key_len;
    char *value; /* a NUL follows it; the same block as key */
    size_t value_len;
    uint64_t mod_revision;
};
/* Key i of the list `kvs` in object, whoever wrote it. *nomem: false for lack of memory. */
bool ec_answer_item(const cJSON *object, size_t i, struct ec_item *out, bool *nomem);
void ec_item_release(struct ec_item *item);
/* The answer to operation i of a transaction: its response_range, response_delete_range,
 * response_put or response_txn. NULL if it is missing. */
const cJSON *ec_answer_part(const cJSON *txn, size_t i);
/* Key 0 of the previous values of a delete. */
bool ec_answer_deleted(const cJSON *part, struct ec_kv *out);

/* A watch: bytes in, events out. */
enum ec_event {
    EC_EVENT_NONE,    /* nothing that matters yet */
    EC_EVENT_CREATED, /* etcd watches */
    EC_EVENT_HEARD,   /* the key is gone; or was put, if there is somebody to hear which */
    EC_EVENT_BROKEN   /* cancelled, compacted, or no watch at all: read and begin anew */
};

/* deleted false: it was put. */
typedef void ec_heard_fn(void *data, const struct ec_kv *kv, bool deleted);

struct ec_stream {
    char *text; /* one message, as far as it came */
    size_t len;
    enum ec_event event; /* the strongest so far */
    unsigned created;    /* how often etcd said that it watches */
    unsigned wanted;     /* how often it will, if somebody waits for it */
    ec_heard_fn *fn;     /* NULL: nobody asks which; else called for each: */
    void *data;          /* key and mod revision alone are filled in */
};

/* Takes in what the server sent. Each line of it is a message. */
void ec_stream_feed(struct ec_stream *stream, const char *data, size_t len);
void ec_stream_clear(struct ec_stream *stream);

#endif /* HF_STORES_ETCD_ANSWER_H */
