/* records.c - records of the embedded store, written and read as libholdfast does. */
#include "records.h"

#include <stdio.h>
#include <string.h>

enum hf_status put_record(struct hf_store_base *base, const struct kit_hold *hold, struct put put,
                          struct hf_error *err)
{
    int64_t patience_ms = put.patience_ms != 0 ? put.patience_ms : KIT_PATIENCE_MS;
    struct hf_record_write write = {.name = hold->name,
                                    .owner = hold->owner,
                                    .token = hold->token,
                                    .number = put.number,
                                    .key = put.key,
                                    .value = put.value,
                                    .value_len = strlen(put.value),
                                    .keep_ms = put.keep_ms,
                                    .deadline_ns =
                                        base->host->now_ns() + patience_ms * HF__NS_PER_MS};
    struct hf_record_write first = write;

    first.key = put.first;
    first.number--;
    first.keep_ms = 0;
    if (put.forgettable)
        return base->ops->put_forgettable(base, put.first != NULL ? &first : NULL, &write, err);
    if (put.first == NULL)
        return base->ops->record_put(base, &write, err);
    return base->ops->record_put_both(base, &first, &write, err);
}

static bool copy_value(const struct hf_record *record, void *data)
{
    (void)snprintf(data, 64, "%s", (const char *)record->value);
    return true;
}

enum hf_status get_record(struct hf_store_base *base, const char *name, const char *key,
                          char out[64], struct hf_error *err)
{
    struct hf_record_query query = {.name = name, .key = key, .deadline_ns = HF_NEVER};

    (void)snprintf(out, 64, "nothing");
    return base->ops->record_get(base, &query, copy_value, out, NULL, err);
}

void expect_record(struct hf_store_base *base, const char *name, const char *key, const char *value)
{
    struct hf_error err = {0};
    char found[64];

    kit_expect(get_record(base, name, key, found, &err), HF_OK, &err);
    assert_string_equal(found, value != NULL ? value : "nothing");
}

static bool count_up(const struct hf_record *record, void *data)
{
    (void)record;
    ++*(long *)data;
    return true;
}

enum hf_status list_records(struct hf_store_base *base, const char *name, const char *prefix,
                            long *count, struct hf_error *err)
{
    struct hf_record_query query = {.name = name, .key = prefix, .deadline_ns = HF_NEVER};

    *count = 0;
    return base->ops->record_list(base, &query, count_up, count, err);
}

const char *record_file(const char *dir, const char *name, const char *key)
{
    static char path[800];
    char below[RECORD_PATH_SIZE];

    hf__record_path(below, name, key);
    (void)snprintf(path, sizeof path, "%s/%s", dir, below);
    return path;
}

long record_files(const char *dir, const char *name, const char *prefix)
{
    char shard[RECORD_PATH_SIZE];

    hf__record_shard(shard, name);
    return kit_count(dir, shard, prefix);
}
