/* open.h - the slot file: finding this boot's, or making it. */
#ifndef HF_STORES_FILE_OPEN_H
#define HF_STORES_FILE_OPEN_H

#include "stores/file/file.h"

/* dir_fd is open and locked. The lock may be given up meanwhile, and is had again on HF_OK, unless
 * store->alone. Readonly, slots_fd stays -1 if there is none, and dir_fd need not be locked. */
enum hf_status hf__slots_open(struct file_store *store, int64_t deadline_ns, struct hf_error *err);

#endif /* HF_STORES_FILE_OPEN_H */
