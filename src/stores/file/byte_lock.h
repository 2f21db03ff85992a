/* byte_lock.h - the byte locks over pages. */
#ifndef HF_STORES_FILE_BYTE_LOCK_H
#define HF_STORES_FILE_BYTE_LOCK_H

#include "stores/file/file.h"

/* Takes the lock of a page (PAGE_NONE: of growing), trying until deadline_ns. HF_BUSY, without a
 * text: somebody has it. */
enum hf_status hf__byte_lock(struct file_store *store, uint32_t page_no, int64_t deadline_ns,
                             struct hf_error *err);
void hf__byte_unlock(struct file_store *store, uint32_t page_no);
/* HF_UNREACHABLE, and who sits on it. Asks every process: not for those who only try again. */
enum hf_status hf__byte_lock_explain(struct file_store *store, uint32_t page_no,
                                     struct hf_error *err);

#endif /* HF_STORES_FILE_BYTE_LOCK_H */
