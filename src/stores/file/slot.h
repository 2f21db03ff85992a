/* slot.h - a lock in its locked page: found, made, granted.
 *
 * Whoever has the page locked decides alone about names, queues and what is over. But a free lock
 * may be taken, and a held one renewed or released, at any time. So each change of the word swaps
 * what was seen; HF_STALE, without a text, means that it is something else by now: look again. */
#ifndef HF_STORES_FILE_SLOT_H
#define HF_STORES_FILE_SLOT_H

#include "stores/file/page.h"
#include "stores/file/view.h"

/* The slot of a name, or -1. */
int hf__slot_find(const struct bucket *bucket, uint64_t hash, const char *name);
/* Sees what a slot of the page is now. The page need not be locked if its name does not matter:
 * HF_STALE then, if it never stood still. */
enum hf_status hf__slot_read(struct file_store *store, const struct bucket *bucket, int index,
                             struct view *out, struct hf_error *err);
/* Both. *found: out, or NULL if there is no such lock. */
enum hf_status hf__slot_see(struct file_store *store, const struct bucket *bucket, const char *name,
                            struct view *out, struct view **found, struct hf_error *err);
/* Locks the page of claim->name and finds its slot, which is made if need be; splits pages as often
 * as it takes. A blocked page as of hf__page_lock. */
enum hf_status hf__slot_make(struct file_store *store, const struct hf_claim *claim,
                             struct bucket *bucket, struct view *out, struct hf_error *err);
/* True if it is held by a live, unexpired holder. */
bool hf__slot_held(struct file_store *store, const struct view *view, int64_t now_ns);
/* Why the lock (NULL: there is none) is not held by this owner with this token; HF_LOSS_NONE if it
 * is. Only a caller that has looked by name, with the page locked, may tell. */
enum hf_loss hf__slot_why_lost(const struct view *view, const unsigned char *owner, uint64_t token,
                               int64_t now_ns);
/* The same for a renewal: HF_LOSS_BROKEN as well. */
enum hf_loss hf__slot_why_not_renewed(const struct view *view, const unsigned char *owner,
                                      uint64_t token, int64_t now_ns);
/* Gives the slot back; its token becomes the page's floor first. HF_BUSY: it is held or waited
 * for. */
enum hf_status hf__slot_forget(struct file_store *store, struct bucket *bucket, int index,
                               struct hf_error *err);
/* One swap makes the lock the claim's; then the queue begins at `head`. Fills in *grant. */
enum hf_status hf__slot_grant(struct file_store *store, struct view *view,
                              const struct hf_claim *claim, uint64_t head, struct hf_grant *grant,
                              struct hf_error *err);
/* Swaps the word that was seen for another one. */
enum hf_status hf__slot_swap(struct file_store *store, struct view *view, struct hf__pair to,
                             struct hf_error *err);
/* Where the queue begins and ends. */
enum hf_status hf__slot_set_queue(struct file_store *store, struct view *view, uint64_t head,
                                  uint64_t tail, struct hf_error *err);
/* Notes that the present hold is the one that was broken last; the word's flag is set apart. */
enum hf_status hf__slot_set_broken(struct file_store *store, struct view *view,
                                   struct hf_error *err);

#endif /* HF_STORES_FILE_SLOT_H */
