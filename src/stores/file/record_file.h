/* record_file.h - a record as a file: its name, its bytes, read whole and never changed in place.
 *
 *   records/SHARD/LOCK-KEY    one record; LOCK and KEY are hashes of 128 bits, SHARD is of LOCK.
 *                             Two that were written in one step are one file, which has both, and
 *                             either name until that is given to a newer one: they cost one sync
 *   records/SHARD/.DRAFT      one that is being written, or was when its writer died
 *   records/ready             the shards are there, and safe against loss of power
 *
 * Unlike the slot file they outlive a reboot, and everything else but `rm`.
 */
#ifndef HF_STORES_FILE_RECORD_FILE_H
#define HF_STORES_FILE_RECORD_FILE_H

#include "stores/file/file.h"

#define RECORD_SHARDS    64
#define RECORD_PATH_SIZE 96 /* "records/3f/" + two hashes, or a draft's name */

/* What stands in front of name, key and value, without a NUL between them. */
struct record_head {
    uint64_t sum; /* of all that follows, value and all */
    char magic[8];
    uint32_t version;
    uint32_t name_len;
    uint32_t key_len;
    uint32_t value_len;
    uint64_t token;
    uint64_t number;
    int64_t written_ms; /* CLOCK_REALTIME */
    int64_t until_ms;   /* 0: for ever */
};
_Static_assert(sizeof(struct record_head) == 64, "a head has no holes");

/* A record in memory. Allocated: bytes. */
struct record_copy {
    bool found;
    struct record_head head;
    char name[HF_NAME_MAX + 1];
    char key[HF_RECORD_KEY_MAX + 1];
    char *bytes; /* the file; NULL: there is none */
    const char *value;
};

/* The folder of a lock's records; how their names start; and the path of one. */
void hf__record_shard(char out[RECORD_PATH_SIZE], const char *name);
void hf__record_prefix(char out[RECORD_PATH_SIZE], const char *name);
void hf__record_path(char out[RECORD_PATH_SIZE], const char *name, const char *key);

/* Whether those len bytes are a record, or two, and the one that belongs at path is among them;
 * fills in all of *out but `found` and `bytes`. */
bool hf__record_parse(const char *bytes, size_t len, const char *path, struct record_copy *out);
/* Reads the file. Nothing there: HF_OK, not found. HF_CORRUPT: it is not what was written, or not
 * what the path is for (name NULL: any lock's). Pairs with hf__record_copy_release, always. */
enum hf_status hf__record_read(struct file_store *store, const char *path, const char *name,
                               struct record_copy *out, struct hf_error *err);
void hf__record_copy_release(struct record_copy *copy);

/* Makes the folders, once and for all. */
enum hf_status hf__record_prepare(struct file_store *store, struct hf_error *err);
/* Writes a record, or two (first NULL: one), beside its place, and syncs it; fills in the path of
 * the draft. */
enum hf_status hf__record_draft(struct file_store *store, const struct hf_record_write *first,
                                const struct hf_record_write *write, char path[RECORD_PATH_SIZE],
                                struct hf_error *err);
/* Makes what was renamed in the lock's folder safe against loss of power. */
enum hf_status hf__record_sync(struct file_store *store, const char *name, struct hf_error *err);

#endif /* HF_STORES_FILE_RECORD_FILE_H */
