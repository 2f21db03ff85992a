/* records.h - what the tests of records share. */
#ifndef HF_TESTS_CONFORM_RECORDS_H
#define HF_TESTS_CONFORM_RECORDS_H

#include "client/client.h"
#include "conform.h"

struct put {
    uint64_t number;
    const void *value;
    size_t len; /* 0: the value is a string */
    int64_t keep_ms;
};

/* A record as it was read, with the store's clock at that time. */
struct record {
    unsigned calls; /* 0: there was none */
    char key[HF_RECORD_KEY_MAX + 1];
    char *value;
    size_t len;
    uint64_t token, number;
    int64_t written_ms, until_ms;
    int64_t now_ms;
};

/* Puts with the owner and token of the hold; sends again what was not answered. */
enum hf_status put_for(struct hf_store_base *store, struct hold *hold, const char *key,
                       struct put put);
/* Fails the test if reading fails. */
struct record read_record(struct hf_store_base *store, const char *name, const char *key);
void free_record(struct record *record);
/* Whether that is on record; NULL: whether nothing is. */
bool reads(struct hf_store_base *store, const char *name, const char *key, const char *value);

/* The same theme in further files. */
void add_record_list_tests(struct suite *suite);
void add_library_record_tests(struct suite *suite);

#endif /* HF_TESTS_CONFORM_RECORDS_H */
