/* details.h - who holds a lock: in its slot, or in a page of the client's own.
 *
 * They are complete before a word names them, and are not touched until none does: whoever takes a
 * number here gives it back only when the swap that ended its use has succeeded, or when the lock
 * was looked up with its page locked and has another token. */
#ifndef HF_STORES_FILE_DETAILS_H
#define HF_STORES_FILE_DETAILS_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

/* A number of our own that no word names; 0: there is none. *use: this use of it. */
uint32_t hf__details_take(struct file_store *store, uint64_t *use);
/* The present use of a number that a word names. To be asked before the swap that ends it. */
uint64_t hf__details_use(struct file_store *store, uint32_t number);
/* The word of the slot at `slot_at` names it, or may do so; even after that word has changed. */
void hf__details_named(struct file_store *store, uint32_t number, uint64_t use, off_t slot_at,
                       struct hf__pair word, const struct details *details);
/* It was renewed. */
void hf__details_renewed(struct file_store *store, uint32_t number, off_t slot_at,
                         struct hf__pair word);
/* The number of our own hold of this owner and token, and what its word was when we saw it last; 0:
 * we know of none. */
uint32_t hf__details_own(struct file_store *store, const unsigned char *owner, uint64_t token,
                         off_t *slot_at, struct hf__pair *word);
/* Nothing names it any more, as it was used then: another thread may have found that out, and have
 * taken it. Another client's, and 0, are left alone. */
void hf__details_give(struct file_store *store, uint32_t number, uint64_t use);
/* The same for whatever we have about that hold. */
void hf__details_give_hold(struct file_store *store, uint64_t hash, uint64_t token);

/* Are they in the slot? */
static inline bool hf__details_in_slot(uint32_t number)
{
    return number == DETAILS_SLOT || number == DETAILS_OTHER;
}
/* Where those that the word of the slot at `slot_at` names are. HF_CORRUPT: nowhere. */
enum hf_status hf__details_find(struct file_store *store, off_t slot_at, uint32_t number,
                                off_t *out, struct hf_error *err);
enum hf_status hf__details_read(struct file_store *store, off_t slot_at, uint32_t number,
                                struct details *out, struct hf_error *err);
/* Writes those of the slot, or ours: no word may name them now. */
enum hf_status hf__details_write(struct file_store *store, off_t slot_at, uint32_t number,
                                 const struct details *details, struct hf_error *err);
/* Details that lie in the slot, and are named, get another ttl under the other one of their two
 * numbers, which is *number then: they have it from the swap on that names that. */
enum hf_status hf__details_write_ttl(struct file_store *store, off_t slot_at, uint64_t ttl_ms,
                                     uint32_t *number, struct hf_error *err);
/* What is to be known of a hold that begins at now_ns, but for its token and its owner.
 * HF_UNSUPPORTED: its end cannot be written down. */
enum hf_status hf__details_of(const struct file_store *store, const struct hf_claim *claim,
                              uint64_t hash, int64_t now_ns, struct details *out,
                              struct hf_error *err);

/* A client page's place in the table: its page; and whether that is one. */
enum hf_status hf__client_page(struct file_store *store, uint32_t place, uint32_t *out,
                               struct hf_error *err);

#endif /* HF_STORES_FILE_DETAILS_H */
