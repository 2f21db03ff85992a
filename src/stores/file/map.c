/* map.c - the bytes of the slot file: read and written, and words compared and swapped.
 *
 * The file is mapped in chunks, each when something in it is first needed. What was never written
 * is not mapped: a page is appended by a pwrite, which can fail, before anybody touches it in
 * memory. In a forked child the chunks are not there, as nothing of the store is to be used. */
#include "stores/file/map.h"
#include "base/base.h"
#include "stores/file/byte_lock.h"
#include "stores/file/errors.h"
#include "stores/file/step.h"
#include "stores/file/word.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CHUNK_BITS  10 /* pages of a chunk: 4 MiB */
#define CHUNK_PAGES (1u << CHUNK_BITS)
#define CHUNK_SIZE  ((size_t)CHUNK_PAGES * PAGE_SIZE)
#define CHUNKS_MAX  (1u << 16) /* 256 GiB */
#define CLONE_NAME  ".clone"
#define LOAD_TRIES  100          /* to read a guarded word that others write */
#define PATIENCE_NS HF__NS_PER_S /* for the lock of a guarded word */

enum hf_status hf__page_damaged(const struct file_store *store, uint32_t page_no,
                                struct hf_error *err)
{
    char what[64];

    (void)snprintf(what, sizeof what, "page %u of the slot file is damaged", page_no);
    return hf__error_damaged(store, what, false, err);
}

enum hf_status hf__map_open(struct file_store *store, bool mapped, struct hf_error *err)
{
    store->mapped = mapped;
    if (mapped)
        store->chunks = calloc(CHUNKS_MAX, sizeof *store->chunks);
    return mapped && store->chunks == NULL ? hf__nomem(err) : HF_OK;
}

void hf__map_close(struct file_store *store, bool forked)
{
    for (size_t i = 0; store->chunks != NULL && !forked && i < CHUNKS_MAX; i++) {
        char *chunk = atomic_load_explicit(&store->chunks[i], memory_order_relaxed);

        if (chunk == NULL)
            break; /* they are mapped in their order */
        (void)munmap(chunk, CHUNK_SIZE);
    }
    free(store->chunks);
    store->chunks = NULL;
}

/* Where files can share blocks, a write may need a new one, and there may be none. */
static bool clones(const struct file_store *store, int fd)
{
    int other = openat(store->dir_fd, CLONE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool refused;

    if (other < 0)
        return true;
    refused = ioctl(other, FICLONE, fd) != 0 && errno == EOPNOTSUPP;
    (void)close(other);
    (void)unlinkat(store->dir_fd, CLONE_NAME, 0);
    return !refused;
}

bool hf__map_allowed(const struct file_store *store, int fd)
{
    struct statfs fs;

    if (store->shared || !hf__cas_able() || !store->sys->maps || fstatfs(fd, &fs) != 0)
        return false;
    switch ((uint32_t)fs.f_type) {
    case EXT4_SUPER_MAGIC: /* ext2 and ext3 have the same */
    case TMPFS_MAGIC:
        return true;
    case XFS_SUPER_MAGIC:
        return !clones(store, fd);
    default:
        return false;
    }
}

enum hf_status hf__map_count(struct file_store *store, uint32_t *out, struct hf_error *err)
{
    struct stat st;

    if (fstat(store->slots_fd, &st) != 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": cannot examine the slot file: %s", strerror(errno));
    if (st.st_size / PAGE_SIZE >= (off_t)CHUNKS_MAX * CHUNK_PAGES)
        return hf__page_damaged(store, PAGE_NONE, err); /* more than there can be */
    *out = (uint32_t)(st.st_size / PAGE_SIZE);
    return HF_OK;
}

/* All chunks up to this one. NULL with errno. */
static char *map_chunks(struct file_store *store, uint32_t last)
{
    int protection = store->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
    char *chunk = NULL;

    pthread_mutex_lock(&store->map_lock);
    for (uint32_t i = 0; i <= last; i++) {
        chunk = atomic_load(&store->chunks[i]);
        if (chunk != NULL)
            continue;
        chunk = mmap(NULL, CHUNK_SIZE, protection, MAP_SHARED, store->slots_fd,
                     (off_t)i * (off_t)CHUNK_SIZE);
        if (chunk == MAP_FAILED) {
            chunk = NULL;
            break;
        }
        (void)madvise(chunk, CHUNK_SIZE, MADV_DONTFORK);
        atomic_store(&store->chunks[i], chunk);
    }
    pthread_mutex_unlock(&store->map_lock);
    return chunk;
}

const void *hf__map_page(struct file_store *store, uint32_t page_no)
{
    uint32_t count = 0;
    char *chunk;

    if (page_no >= atomic_load_explicit(&store->page_count, memory_order_acquire)) {
        errno = 0;
        if (hf__map_count(store, &count, NULL) != HF_OK || page_no >= count)
            return NULL;
        atomic_store(&store->page_count, count);
    }
    chunk = atomic_load_explicit(&store->chunks[page_no >> CHUNK_BITS], memory_order_acquire);
    if (chunk == NULL)
        chunk = map_chunks(store, page_no >> CHUNK_BITS);
    return chunk == NULL ? NULL : chunk + (size_t)(page_no % CHUNK_PAGES) * PAGE_SIZE;
}

/* Where in memory; NULL with errno, as hf__map_page. */
static char *find(struct file_store *store, off_t at)
{
    const void *page = hf__map_page(store, (uint32_t)(at / PAGE_SIZE));

    return page != NULL ? (char *)page + at % PAGE_SIZE : NULL;
}

/* Why it is not there, by that errno. */
static enum hf_status not_there(const struct file_store *store, off_t at, struct hf_error *err)
{
    if (errno == 0)
        return hf__page_damaged(store, (uint32_t)(at / PAGE_SIZE), err);
    return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown, ": cannot map the slot file: %s",
                         strerror(errno));
}

static enum hf_status read_file(struct file_store *store, off_t at, void *out, size_t len,
                                struct hf_error *err)
{
    ssize_t got = store->sys->pread(store->slots_fd, out, len, at);

    if (got < 0)
        return hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown,
                             ": cannot read the slot file: %s", strerror(errno));
    return (size_t)got == len ? HF_OK : hf__page_damaged(store, (uint32_t)(at / PAGE_SIZE), err);
}

static enum hf_status write_file(struct file_store *store, off_t at, const void *data, size_t len,
                                 struct hf_error *err)
{
    char there[PAGE_SIZE];
    bool known;
    int error;

    if (hf__write_all(store->sys, store->slots_fd, data, len, at))
        return HF_OK;
    /* What readers see is what counts, whatever was said about the write. */
    error = errno;
    known = store->sys->pread(store->slots_fd, there, len, at) == (ssize_t)len;
    if (known && memcmp(there, data, len) == 0)
        return HF_OK;
    return hf__fail_lock(err, known ? HF_UNREACHABLE : HF_UNKNOWN, NULL, store->shown,
                         ": cannot write the slot file: %s", strerror(error));
}

enum hf_status hf__map_read(struct file_store *store, off_t at, void *out, size_t len,
                            struct hf_error *err)
{
    uint64_t *to = out;
    const char *from;

    if (!store->mapped)
        return read_file(store, at, out, len, err);
    from = find(store, at);
    if (from == NULL)
        return not_there(store, at, err);
    for (size_t i = 0; i < len / sizeof *to; i++)
        to[i] = hf__map_get(from + i * sizeof *to);
    return HF_OK;
}

enum hf_status hf__map_write(struct file_store *store, off_t at, const void *data, size_t len,
                             struct hf_error *err)
{
    const uint64_t *from = data;
    char *to;

    if (!store->mapped)
        return write_file(store, at, data, len, err);
    to = find(store, at);
    if (to == NULL)
        return not_there(store, at, err);
    for (size_t i = 0; i < len / sizeof *from; i++)
        __atomic_store_n((uint64_t *)(void *)to + i, from[i], __ATOMIC_RELEASE);
    return HF_OK;
}

/* The halves are read one after the other. A token never comes back, so between two equal ones the
 * high half was of that token. */
struct hf__pair hf__map_word(const struct hf__pair *at)
{
    struct hf__pair word;

    do {
        word.low = hf__map_get(&at->low);
        word.high = hf__map_get(&at->high);
    } while (word.low != hf__map_get(&at->low));
    return word;
}

/* Two reads that agree have seen one value, for the same reason. */
static enum hf_status load_guarded(struct file_store *store, off_t at, struct hf__pair *out,
                                   struct hf_error *err)
{
    struct hf__pair again;
    enum hf_status status = read_file(store, at, out, sizeof *out, err);

    for (int i = 0; status == HF_OK && i < LOAD_TRIES; i++) {
        status = read_file(store, at, &again, sizeof again, err);
        if (status == HF_OK && hf__word_same(*out, again))
            return HF_OK;
        *out = again;
    }
    return status != HF_OK ? status
                           : hf__fail_lock(err, HF_UNREACHABLE, NULL, store->shown, ": too busy");
}

enum hf_status hf__word_load(struct file_store *store, off_t at, struct hf__pair *out,
                             struct hf_error *err)
{
    const char *there;

    if (!store->mapped)
        return load_guarded(store, at, out, err);
    there = find(store, at);
    if (there == NULL)
        return not_there(store, at, err);
    *out = hf__map_word((const struct hf__pair *)(const void *)there);
    return HF_OK;
}

static uint64_t byte_of(off_t at)
{
    return LOCK_WORDS + (uint64_t)(at / SLOT_SIZE);
}

enum hf_status hf__word_lock(struct file_store *store, off_t at)
{
    return hf__byte_lock(store, byte_of(at), 0, NULL) == HF_OK ? HF_OK : HF_STALE;
}

void hf__word_unlock(struct file_store *store, off_t at)
{
    hf__byte_unlock(store, byte_of(at));
}

enum hf_status hf__word_put(struct file_store *store, off_t at, struct hf__pair to,
                            struct hf_error *err)
{
    enum hf_status status = write_file(store, at, &to, sizeof to, err);

    HF__STEP(word_written);
    return status;
}

static enum hf_status swap_guarded(struct file_store *store, off_t at, struct hf__pair from,
                                   struct hf__pair to, struct hf_error *err)
{
    uint64_t byte = byte_of(at);
    struct hf__pair there;
    enum hf_status status =
        hf__byte_lock(store, byte, store->base.host->now_ns() + PATIENCE_NS, err);

    if (status == HF_BUSY)
        return hf__byte_lock_explain(store, byte, err);
    if (status != HF_OK)
        return status;
    status = read_file(store, at, &there, sizeof there, err);
    HF__STEP(word_read);
    if (status == HF_OK && !hf__word_same(there, from))
        status = HF_STALE;
    if (status == HF_OK)
        status = hf__word_put(store, at, to, err);
    hf__byte_unlock(store, byte);
    return status;
}

enum hf_status hf__word_swap(struct file_store *store, off_t at, struct hf__pair from,
                             struct hf__pair to, struct hf_error *err)
{
    char *there;

    if (!store->mapped)
        return swap_guarded(store, at, from, to, err);
    there = find(store, at);
    if (there == NULL)
        return not_there(store, at, err);
    return hf__cas((struct hf__pair *)(void *)there, from, to) ? HF_OK : HF_STALE;
}
