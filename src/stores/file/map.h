/* map.h - the bytes of the slot file: read and written, and words compared and swapped.
 *
 * Where words are mapped all this happens in memory; where they are guarded, by pread and pwrite.
 * Places and lengths are multiples of 8, within one page. Eight bytes are never seen half
 * written. */
#ifndef HF_STORES_FILE_MAP_H
#define HF_STORES_FILE_MAP_H

#include "stores/file/file.h"
#include "stores/file/layout.h"

/* Gets ready for a slot file that is open. HF_OK, HF_NOMEM. */
enum hf_status hf__map_open(struct file_store *store, bool mapped, struct hf_error *err);
/* In a forked child there is nothing to unmap. */
void hf__map_close(struct file_store *store, bool forked);
/* Whether a new slot file, which is open, may be mapped: its file system never fails a store into a
 * page that was written once. */
bool hf__map_allowed(const struct file_store *store, int fd);

/* The page in memory, where words are mapped. NULL: the file has no such page, errno 0; or
 * errno. */
const void *hf__map_page(struct file_store *store, uint32_t page_no);
/* How many whole pages the file has. */
enum hf_status hf__map_count(struct file_store *store, uint32_t *out, struct hf_error *err);

enum hf_status hf__map_read(struct file_store *store, off_t at, void *out, size_t len,
                            struct hf_error *err);
/* In the order of the calls, for whoever reads. HF_UNKNOWN: it may have been written. */
enum hf_status hf__map_write(struct file_store *store, off_t at, const void *data, size_t len,
                             struct hf_error *err);

/* The word of a slot at this place, as it was at some moment of the call. */
enum hf_status hf__word_load(struct file_store *store, off_t at, struct hf__pair *out,
                             struct hf_error *err);
/* HF_STALE, without a text: it is not `from` any more, look again. HF_UNKNOWN: it may have been
 * swapped. A full fence. */
enum hf_status hf__word_swap(struct file_store *store, off_t at, struct hf__pair from,
                             struct hf__pair to, struct hf_error *err);

/* Where words are guarded: nobody else changes this one until it is unlocked. HF_STALE: somebody
 * has it, go the way that waits. */
enum hf_status hf__word_lock(struct file_store *store, off_t at);
void hf__word_unlock(struct file_store *store, off_t at);
/* Changes a word that is locked, and was read since. HF_UNKNOWN: it may have been written. */
enum hf_status hf__word_put(struct file_store *store, off_t at, struct hf__pair to,
                            struct hf_error *err);

/* One of eight aligned bytes of a page, whether it is in a map or a copy. */
static inline uint64_t hf__map_get(const void *at)
{
    return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}
/* A word there; one that changes is read again. */
struct hf__pair hf__map_word(const struct hf__pair *at);

/* HF_CORRUPT, with the way out. */
enum hf_status hf__page_damaged(const struct file_store *store, uint32_t page_no,
                                struct hf_error *err);
static inline off_t hf__page_at(uint32_t page_no)
{
    return (off_t)page_no * PAGE_SIZE;
}

#endif /* HF_STORES_FILE_MAP_H */
