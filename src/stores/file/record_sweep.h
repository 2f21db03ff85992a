/* record_sweep.h - removing records that have expired. */
#ifndef HF_STORES_FILE_RECORD_SWEEP_H
#define HF_STORES_FILE_RECORD_SWEEP_H

#include "stores/file/file.h"

/* Looks at some of the files beside the records of lock `name`, and removes those that have
 * expired, and old drafts. No page may be locked. */
void hf__record_sweep(struct file_store *store, const char *name);
/* The same, now and then: one write in a number of them does it, more often if what it wrote
 * expires one day. */
void hf__record_sweep_sometimes(struct file_store *store, const char *name, bool expires);

/* Whether the time of a record was over at now_ms. */
bool hf__record_expired(int64_t until_ms, int64_t now_ms);

#endif /* HF_STORES_FILE_RECORD_SWEEP_H */
