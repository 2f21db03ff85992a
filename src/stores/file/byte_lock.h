/* byte_lock.h - the byte locks: one for each page, and a few more. */
#ifndef HF_STORES_FILE_BYTE_LOCK_H
#define HF_STORES_FILE_BYTE_LOCK_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

/* Which byte: a page's is its number. Whoever needs several takes them in the order clients, page,
 * growing, word. */
#define LOCK_GROWING ((uint64_t)PAGE_NONE)
#define LOCK_CLIENTS ((uint64_t)1 << 32)
#define LOCK_WORDS   ((uint64_t)1 << 33) /* and the number of the slot's block in the file */

/* Takes a lock, trying until deadline_ns. HF_BUSY, without a text: somebody has it. */
enum hf_status hf__byte_lock(struct file_store *store, uint64_t byte, int64_t deadline_ns,
                             struct hf_error *err);
void hf__byte_unlock(struct file_store *store, uint64_t byte);
/* HF_UNREACHABLE, and who sits on it. Asks every process: not for those who only try again. */
enum hf_status hf__byte_lock_explain(struct file_store *store, uint64_t byte, struct hf_error *err);

#endif /* HF_STORES_FILE_BYTE_LOCK_H */
