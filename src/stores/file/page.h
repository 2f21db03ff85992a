/* page.h - the pages of the slot file: found, locked, read, written, split. */
#ifndef HF_STORES_FILE_PAGE_H
#define HF_STORES_FILE_PAGE_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

/* A page that is locked and read. */
struct bucket {
    uint32_t page_no;
    bool blocked; /* or could not be locked in time */
    struct page page;
};

uint64_t hf__name_hash(const char *name);
/* The page where to begin for a hash: the right one, or one that leads there. */
uint32_t hf__page_guess(struct file_store *store, uint64_t hash);
/* Locks and reads the page that `hash` belongs to. Pairs with hf__page_unlock. HF_UNREACHABLE with
 * out->blocked, and no text yet: it could not be locked in time. */
enum hf_status hf__page_lock(struct file_store *store, uint64_t hash, int64_t deadline_ns,
                             struct bucket *out, struct hf_error *err);
void hf__page_unlock(struct file_store *store, const struct bucket *bucket);
/* Passes a status of hf__page_lock on, with the text that a blocked page deserves. */
enum hf_status hf__page_failed(struct file_store *store, const struct bucket *bucket,
                               enum hf_status status, struct hf_error *err);
/* Writes one block of a locked page: its head, or a slot. */
enum hf_status hf__page_write(struct file_store *store, struct bucket *bucket, void *block,
                              struct hf_error *err);
/* Writes a slot of a locked page as one that was never written. */
enum hf_status hf__page_clear(struct file_store *store, struct bucket *bucket, struct slot *slot,
                              struct hf_error *err);
/* Splits a full locked page; it stays locked, and may now be the wrong one for a hash. */
enum hf_status hf__page_split(struct file_store *store, struct bucket *bucket,
                              struct hf_error *err);
/* How many whole pages the file has. */
enum hf_status hf__page_count(struct file_store *store, uint32_t *out, struct hf_error *err);
/* Reads and checks a page; without its lock, a change caught in the middle looks like damage. */
enum hf_status hf__page_read(struct file_store *store, uint32_t page_no, struct page *out,
                             struct hf_error *err);
/* HF_CORRUPT, with the way out. */
enum hf_status hf__page_damaged(const struct file_store *store, uint32_t page_no,
                                struct hf_error *err);
/* Where names with this hash live according to a page's head: the page itself or another one. */
uint32_t hf__page_route(const struct page_head *head, uint32_t page_no, uint64_t hash);

#endif /* HF_STORES_FILE_PAGE_H */
