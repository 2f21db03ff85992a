/* url.h - from a file: URL to a directory. */
#ifndef HF_STORES_FILE_URL_H
#define HF_STORES_FILE_URL_H

#include <holdfast.h>

/* *shared_out: ?shared=group. The caller frees *path_out. HF_OK, HF_INVALID, HF_NOMEM. */
enum hf_status hf__url_dir(const char *url, char **path_out, bool *shared_out,
                           struct hf_error *err);

#endif /* HF_STORES_FILE_URL_H */
