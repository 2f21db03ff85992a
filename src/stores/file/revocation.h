/* revocation.h - who broke a hold, when and why: a small file beside the slot file.
 *
 *   broken/HASH-TOKEN   of the lock's name; written with its page locked, before the slot tells
 *
 * The slot has the token that was broken last, and that decides about the hold that is there: a
 * file that is missing costs its words. A hold that is over, and after which others were broken, is
 * known by its file alone. Nothing has to be cleared. */
#ifndef HF_STORES_FILE_REVOCATION_H
#define HF_STORES_FILE_REVOCATION_H

#include "stores/file/file.h"
#include "stores/file/view.h"

/* Writes down who breaks the hold of the slot. */
enum hf_status hf__revocation_write(struct file_store *store, const struct view *view,
                                    const struct hf_revoke *revoke, struct hf_error *err);
/* Who broke the hold with that token. False, and all empty: nobody did, or that cannot be told. */
bool hf__revocation_read(struct file_store *store, const char *name, uint64_t token,
                         struct hf_revocation *out);
/* Who broke the last of its holds that is known to have been broken; all empty: none is. */
void hf__revocation_last(struct file_store *store, const char *name, struct hf_revocation *out);
/* Removes a few files whose holds are over for sure. No page is locked. */
void hf__revocation_sweep(struct file_store *store);

#endif /* HF_STORES_FILE_REVOCATION_H */
