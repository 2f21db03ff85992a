/* record.h - reading a record in tests, by the same callbacks as a listing of them. */
#ifndef HF_TESTS_SUPPORT_RECORD_H
#define HF_TESTS_SUPPORT_RECORD_H

#include <holdfast/record.h>

static inline enum hf_status get_record(struct hf_store *store, const char *name, const char *key,
                                        hf_record_fn *fn, void *data, struct hf_error *err)
{
    struct hf_record *record;
    enum hf_status status = hf_record_get(store, name, key, &record, NULL, err);

    if (record != NULL)
        (void)fn(record, data);
    hf_record_free(record);
    return status;
}

#endif /* HF_TESTS_SUPPORT_RECORD_H */
