/* slot.h - a lock in its locked page: found, made, granted. */
#ifndef HF_STORES_FILE_SLOT_H
#define HF_STORES_FILE_SLOT_H

#include "stores/file/page.h"
#include <string.h>

/* The slot of a name, or NULL. */
struct slot *hf__slot_find(struct bucket *bucket, uint64_t hash, const char *name);
/* Locks the page of claim->name and finds its slot, which is made if need be; splits pages as often
 * as it takes. A blocked page as of hf__page_lock. */
enum hf_status hf__slot_make(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct slot **out, struct hf_error *err);
/* True if the slot is held by a live, unexpired holder. */
bool hf__slot_held(struct file_store *store, const struct slot *slot, int64_t now_ns);
/* Whether a lock looks held or waited for, at a glance: without its page's lock, and whether or not
 * its holder lives. False may also mean that the glance told nothing. */
bool hf__slot_seems_taken(struct file_store *store, struct bucket *scratch, const char *name);
/* Does the slot (which may be NULL) tell of the hold of this owner with this token? */
static inline bool hf__slot_is_hold(const struct slot *slot, const unsigned char *owner,
                                    uint64_t token)
{
    return slot != NULL && slot->token == token &&
           memcmp(owner, slot->owner, sizeof slot->owner) == 0;
}
/* It is held no more; the caller passes the lock on, and writes. */
void hf__slot_clear(struct slot *slot);
/* Why the slot (which may be NULL) is not held by this owner with this token; HF_LOSS_NONE if it
 * is. */
enum hf_loss hf__slot_why_lost(const struct slot *slot, const unsigned char *owner, uint64_t token,
                               int64_t now_ns);
/* The same for a renewal: HF_LOSS_BROKEN as well. */
enum hf_loss hf__slot_why_not_renewed(const struct slot *slot, const unsigned char *owner,
                                      uint64_t token, int64_t now_ns);
/* Gives the slot back; its token becomes the page's floor first. HF_BUSY: it is held or waited
 * for. */
enum hf_status hf__slot_forget(struct file_store *store, struct bucket *bucket, struct slot *slot,
                               struct hf_error *err);
/* One pwrite makes the lock the claim's. Fills in *grant. */
enum hf_status hf__slot_grant(struct file_store *store, struct bucket *bucket, struct slot *slot,
                              const struct hf_claim *claim, struct hf_grant *grant,
                              struct hf_error *err);

#endif /* HF_STORES_FILE_SLOT_H */
