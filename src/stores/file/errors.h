/* errors.h - what went wrong, as a status and in words. */
#ifndef HF_STORES_FILE_ERRORS_H
#define HF_STORES_FILE_ERRORS_H

#include "stores/file/file.h"
#include "stores/file/view.h"

/* What an errno means for the caller: HF_DENIED, HF_INVALID (a path that leads nowhere, however
 * long one waits) or HF_UNREACHABLE. */
enum hf_status hf__error_status(int error);
/* "cannot WHAT", and the errno in words; its status. */
enum hf_status hf__error_fail(const struct file_store *store, const char *what, int error,
                              struct hf_error *err);
/* HF_CORRUPT: what is damaged, and how to repair it. ask_above: the tokens are in doubt too. */
enum hf_status hf__error_damaged(const struct file_store *store, const char *what, bool ask_above,
                                 struct hf_error *err);
/* HF_BUSY with who holds it. */
enum hf_status hf__error_busy(const struct file_store *store, const struct view *view,
                              const char *name, int64_t now_ns, struct hf_error *err);
/* HF_LOST; also fills in grant->loss, if there is a grant. */
enum hf_status hf__error_lost(const struct file_store *store, const struct hf_claim *claim,
                              enum hf_loss loss, struct hf_grant *grant, struct hf_error *err);
/* HF_INVALID: the claim's owner is not a valid one. */
enum hf_status hf__error_owner(const struct file_store *store, const struct hf_claim *claim,
                               struct hf_error *err);

#endif /* HF_STORES_FILE_ERRORS_H */
