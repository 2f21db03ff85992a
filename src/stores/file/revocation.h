/* revocation.h - who broke a hold, when and why: a small file beside the slot file.
 *
 *   broken/HASH   of the lock's name; written with its page locked, before the slot tells of it
 *
 * The slot has the token that was broken, and that alone decides. So nothing has to be cleared: a
 * file that is about another token says nothing, and one that is missing costs its words. */
#ifndef HF_STORES_FILE_REVOCATION_H
#define HF_STORES_FILE_REVOCATION_H

#include "stores/file/file.h"
#include "stores/file/view.h"

/* Puts down who breaks the hold. */
enum hf_status hf__revocation_write(struct file_store *store, const struct view *view,
                                    const struct hf_revoke *revoke, struct hf_error *err);
/* Who broke the hold with the broken token that was seen; all empty if that cannot be told. */
void hf__revocation_read(struct file_store *store, const struct view *view,
                         struct hf_revocation *out);
/* Removes a few files whose holds are over for sure. No page is locked. */
void hf__revocation_sweep(struct file_store *store);

#endif /* HF_STORES_FILE_REVOCATION_H */
