/* quick.h - what needs no lock of a page: taking a free lock, renewing, releasing what nobody waits
 * for. One swap each.
 *
 * Only a caller that has looked by name, with the page locked, may say that a lock is held by
 * another, or that a hold is lost: here the slot may have moved, and been given to another name. So
 * whatever is not plain to see is HF_STALE, without a text: go the long way. */
#ifndef HF_STORES_FILE_QUICK_H
#define HF_STORES_FILE_QUICK_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

/* A claim, and what is worked out about it once. */
struct quick {
    const struct hf_claim *claim;
    uint64_t hash;                         /* of its name */
    int64_t now_ns;                        /* when it began */
    unsigned char owner[HF_OWNER_LEN / 2]; /* filled in by hf__quick_begin */
};

/* HF_INVALID: the claim's owner is not a valid one. */
enum hf_status hf__quick_begin(const struct file_store *store, struct quick *quick,
                               struct hf_error *err);
/* Whether a lock is held by another at a glance, whether or not its holder lives: only a search for
 * a free one among several may go by that. */
bool hf__quick_taken(struct file_store *store, const char *name, int64_t now_ns);
/* HF_OK: granted. HF_STALE: the long way. HF_UNKNOWN: it may be ours. Others: it cannot be had. */
enum hf_status hf__quick_take(struct file_store *store, const struct quick *quick,
                              struct hf_grant *grant, struct hf_error *err);
/* HF_OK: extended, or seen to be held. HF_STALE, HF_UNKNOWN, HF_UNREACHABLE. */
enum hf_status hf__quick_renew(struct file_store *store, const struct quick *quick,
                               struct hf_grant *grant, struct hf_error *err);
/* HF_OK: it was held and is free. HF_STALE, HF_UNKNOWN, HF_UNREACHABLE. */
enum hf_status hf__quick_release(struct file_store *store, const struct quick *quick,
                                 struct hf_error *err);

#endif /* HF_STORES_FILE_QUICK_H */
