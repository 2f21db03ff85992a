/* location.h - is the store still where its URL says? */
#ifndef HF_STORES_FILE_LOCATION_H
#define HF_STORES_FILE_LOCATION_H

#include "stores/file/file.h"

/* Remembers where the slot file is, which is open. Once per store. */
enum hf_status hf__location_note(struct file_store *store, const char *slots_name,
                                 struct hf_error *err);
/* HF_CORRUPT if the slot file or a directory above it was moved, removed or replaced: nobody else
 * sees what we read and write there. Asks the system at most a hundred times a second. */
enum hf_status hf__location_check(struct file_store *store, struct hf_error *err);
/* The same for a caller that has just read the clock. */
enum hf_status hf__location_check_at(struct file_store *store, int64_t now_ns,
                                     struct hf_error *err);

#endif /* HF_STORES_FILE_LOCATION_H */
