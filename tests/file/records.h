/* records.h - what the tests of the embedded store's records share. */
#ifndef HF_TESTS_FILE_RECORDS_H
#define HF_TESTS_FILE_RECORDS_H

#include "../support/faultkit.h"
#include "stores/file/record_file.h"

/* A put with the owner and token of a hold; value is a string. keep_ms: 0 is for ever. */
struct put {
    const char *key;
    const char *value;
    uint64_t number;
    int64_t keep_ms;
    int64_t patience_ms; /* 0: as long as libholdfast has */
    const char *first; /* the key of another one with the same value, and the number before: both */
    bool forgettable;
};
enum hf_status put_record(struct hf_store_base *base, const struct kit_hold *hold, struct put put,
                          struct hf_error *err);
/* What is on record, at most 63 bytes of it: "nothing" if nothing is. The status of the store. */
enum hf_status get_record(struct hf_store_base *base, const char *name, const char *key,
                          char out[64], struct hf_error *err);
/* Fails the test unless that is on record; NULL: nothing. */
void expect_record(struct hf_store_base *base, const char *name, const char *key,
                   const char *value);
/* How many records a listing tells of. */
enum hf_status list_records(struct hf_store_base *base, const char *name, const char *prefix,
                            long *count, struct hf_error *err);

/* The file of a record, as a path. The string lives until the next call. */
const char *record_file(const char *dir, const char *name, const char *key);
/* The files in the folder of a lock's records: those whose names start with prefix. */
long record_files(const char *dir, const char *name, const char *prefix);

#endif /* HF_TESTS_FILE_RECORDS_H */
