/* convert.h - from a slot file of format 1, of this boot, to one of ours. */
#ifndef HF_STORES_FILE_CONVERT_H
#define HF_STORES_FILE_CONVERT_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

#define FORMAT_BEFORE 1

/* Whether a header that fits is of a file that can be converted. */
bool hf__convertible(const struct file_header *header);
/* Writes to fd, which is empty, what the open slot file of format 1 says: every name, every token,
 * every floor, and the detached holds that are not over. Nobody else uses the store, so that nobody
 * waits and all other holders are gone. *header: what page 0 is to say, without its sum. */
enum hf_status hf__convert(struct file_store *store, int fd, const struct file_header *header,
                           struct hf_error *err);

#endif /* HF_STORES_FILE_CONVERT_H */
