/* floor.h - the durable promise about tokens. */
#ifndef HF_STORES_FILE_FLOOR_H
#define HF_STORES_FILE_FLOOR_H

#include "stores/file/file.h"

#define HOUR_US 3600000000LL

/* Reads the floor. HF_OK with 0: there is none yet. HF_CORRUPT: refused, with the way out. */
enum hf_status hf__floor_read(struct file_store *store, uint64_t *out, struct hf_error *err);
/* Replaces it by write, fsync, rename, fsync. */
enum hf_status hf__floor_write(struct file_store *store, uint64_t promise, struct hf_error *err);
/* The lock over changes of the floor: closing *out gives it back. */
enum hf_status hf__floor_lock(struct file_store *store, int64_t deadline_ns, int *out,
                              struct hf_error *err);
/* Makes sure that `token` may be given; raises the floor first if it is above the promise. */
enum hf_status hf__floor_admit(struct file_store *store, uint64_t token, int64_t deadline_ns,
                               struct hf_error *err);
/* Whether `token` used up half of what was promised. */
bool hf__floor_is_near(const struct file_store *store, uint64_t token);
/* Raises the floor ahead of need, if so. */
void hf__floor_refill(struct file_store *store, uint64_t token);

#endif /* HF_STORES_FILE_FLOOR_H */
