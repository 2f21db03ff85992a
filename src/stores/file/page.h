/* page.h - the pages of the slot file: found, locked, read, written, split. */
#ifndef HF_STORES_FILE_PAGE_H
#define HF_STORES_FILE_PAGE_H

#include "stores/file/file.h"
#include "stores/file/map.h"

/* A page that is locked and read. The words in it are as old as that; the rest is what is there. */
struct bucket {
    uint32_t page_no;
    bool blocked; /* or could not be locked in time */
    struct page page;
};

uint64_t hf__name_hash(const char *name);
/* The page where to begin for a hash: the right one, or one that leads there. */
uint32_t hf__page_guess(struct file_store *store, uint64_t hash);
/* Locks and reads the page that `hash` belongs to, and mends what a dead one left half done. Pairs
 * with hf__page_unlock. HF_UNREACHABLE with out->blocked, and no text yet: it could not be locked
 * in time. */
enum hf_status hf__page_lock(struct file_store *store, uint64_t hash, int64_t deadline_ns,
                             struct bucket *out, struct hf_error *err);
void hf__page_unlock(struct file_store *store, const struct bucket *bucket);
/* Passes a status of hf__page_lock on, with the text that a blocked page deserves. */
enum hf_status hf__page_failed(struct file_store *store, const struct bucket *bucket,
                               enum hf_status status, struct hf_error *err);
/* Writes the head of a locked page. */
enum hf_status hf__page_write_head(struct file_store *store, struct bucket *bucket,
                                   struct hf_error *err);
/* Splits a full locked page; it stays locked, and may now be the wrong one for a hash. */
enum hf_status hf__page_split(struct file_store *store, struct bucket *bucket,
                              struct hf_error *err);
/* Appends a page. Whoever is killed in here leaves at most an unused page behind. */
enum hf_status hf__page_append(struct file_store *store, const void *page, uint32_t *page_no,
                               struct hf_error *err);
/* Reads and checks a page; without its lock, a change caught in the middle looks like damage. */
enum hf_status hf__page_read(struct file_store *store, uint32_t page_no, struct page *out,
                             struct hf_error *err);
/* Where names with this hash live according to a page's head: the page itself or another one. */
uint32_t hf__page_route(const struct page_head *head, uint32_t page_no, uint64_t hash);
/* The same for a page in the map, or a copy of one: what stands there is checked before it is used,
 * and 0 is the answer to nonsense. */
uint32_t hf__page_route_live(const struct page_head *head, uint32_t page_no, uint64_t hash);
/* Where a slot of the page is in the file. */
off_t hf__slot_at(uint32_t page_no, int index);

#endif /* HF_STORES_FILE_PAGE_H */
