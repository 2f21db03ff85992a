/* record_file.c - a record as a file: its name, its bytes, how it is read and written. */
#include "stores/file/record_file.h"
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER   "records"
#define READY    FOLDER "/ready"
#define VERSION  1
#define TEXT_MAX (HF_NAME_MAX + HF_RECORD_KEY_MAX + HF_RECORD_VALUE_MAX)
#define FILE_MAX (2 * (sizeof(struct record_head) + TEXT_MAX))

/* A name is the hash of a text twice, with two seeds. */
enum { LOCK_SEED = 0x6c6f636b, KEY_SEED = 0x6b6579, SUM_SEED = 0x72656373 };

static const char magic[8] = {'h', 'f', 'r', 'e', 'c', 'o', 'r', 'd'};

static uint64_t hash_of(const char *text, uint64_t seed)
{
    return hf__hash64(text, strlen(text), seed);
}

static unsigned shard_of(const char *name)
{
    return (unsigned)(hash_of(name, LOCK_SEED) % RECORD_SHARDS);
}

static void shard_path(char out[RECORD_PATH_SIZE], unsigned shard)
{
    (void)snprintf(out, RECORD_PATH_SIZE, FOLDER "/%02x", shard);
}

void hf__record_shard(char out[RECORD_PATH_SIZE], const char *name)
{
    shard_path(out, shard_of(name));
}

void hf__record_prefix(char out[RECORD_PATH_SIZE], const char *name)
{
    (void)snprintf(out, RECORD_PATH_SIZE, "%016" PRIx64 "%016" PRIx64 "-", hash_of(name, LOCK_SEED),
                   hash_of(name, LOCK_SEED + 1));
}

void hf__record_path(char out[RECORD_PATH_SIZE], const char *name, const char *key)
{
    (void)snprintf(out, RECORD_PATH_SIZE,
                   FOLDER "/%02x/%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "%016" PRIx64,
                   shard_of(name), hash_of(name, LOCK_SEED), hash_of(name, LOCK_SEED + 1),
                   hash_of(key, KEY_SEED), hash_of(key, KEY_SEED + 1));
}

static uint64_t sum_of(const char *bytes, size_t len)
{
    return hf__hash64(bytes + sizeof(uint64_t), len - sizeof(uint64_t), SUM_SEED);
}

static bool head_sound(const struct record_head *head, size_t len)
{
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->version == VERSION &&
           head->name_len <= HF_NAME_MAX && head->key_len <= HF_RECORD_KEY_MAX &&
           head->value_len <= HF_RECORD_VALUE_MAX &&
           len == sizeof *head + head->name_len + head->key_len + head->value_len &&
           head->token != 0 && head->number != 0 && head->until_ms >= 0;
}

static bool is_at(const struct record_copy *copy, const char *path)
{
    char own[RECORD_PATH_SIZE];

    hf__record_path(own, copy->name, copy->key);
    return strcmp(own, path) == 0;
}

static bool parse_one(const char *bytes, size_t len, struct record_copy *out)
{
    struct record_head *head = &out->head;

    if (len < sizeof *head)
        return false;
    memcpy(head, bytes, sizeof *head);
    if (!head_sound(head, len) || head->sum != sum_of(bytes, len))
        return false;
    bytes += sizeof *head;
    memcpy(out->name, bytes, head->name_len);
    out->name[head->name_len] = '\0';
    memcpy(out->key, bytes + head->name_len, head->key_len);
    out->key[head->key_len] = '\0';
    out->value = bytes + head->name_len + head->key_len;
    return hf__name_valid(out->name) && hf__name_valid(out->key);
}

/* How many of those bytes are the first record, by what it says itself. */
static size_t first_len(const char *bytes, size_t len)
{
    struct record_head head;
    uint64_t says;

    if (len < sizeof head)
        return len;
    memcpy(&head, bytes, sizeof head);
    says = (uint64_t)sizeof head + head.name_len + head.key_len + head.value_len;
    return says < len ? (size_t)says : len;
}

/* Every byte has to make sense, also those that are about the other one. */
bool hf__record_parse(const char *bytes, size_t len, const char *path, struct record_copy *out)
{
    size_t first = first_len(bytes, len);

    if (first == len)
        return parse_one(bytes, len, out) && is_at(out, path);
    if (!parse_one(bytes + first, len - first, out))
        return false;
    if (is_at(out, path))
        return parse_one(bytes, first, &(struct record_copy){.found = false});
    return parse_one(bytes, first, out) && is_at(out, path);
}

static enum hf_status cannot(const struct file_store *store, const char *what, const char *path,
                             struct hf_error *err)
{
    char doing[RECORD_PATH_SIZE + 24];
    int error = errno;

    if (error == ENOMEM)
        return hf__nomem(err);
    (void)snprintf(doing, sizeof doing, "%s %s", what, path);
    return hf__error_fail(store, doing, error, err);
}

/* The rest of the store knows nothing of it, so this is all there is to repair. */
static enum hf_status damaged(const struct file_store *store, const char *path,
                              struct hf_error *err)
{
    return hf__fail_lock(err, HF_CORRUPT, NULL, store->shown,
                         ": %s is a damaged record: remove that file to do without it", path);
}

/* The whole file, and one byte more to find out that it is too long. */
static enum hf_status read_bytes(struct file_store *store, int fd, const char *path,
                                 struct record_copy *out, size_t *len, struct hf_error *err)
{
    struct stat st;
    ssize_t got = 0;

    *len = 0;
    if (fstat(fd, &st) != 0)
        return cannot(store, "examine", path, err);
    if (!S_ISREG(st.st_mode) || !hf__dir_trusts(store, &st))
        return hf__fail_lock(err, HF_DENIED, NULL, store->shown,
                             ": %s is not ours alone to write: check owner and mode", path);
    if (st.st_size > (off_t)FILE_MAX)
        return damaged(store, path, err);
    out->bytes = malloc((size_t)st.st_size + 1);
    if (out->bytes == NULL)
        return hf__nomem(err);
    while (*len < (size_t)st.st_size &&
           (got = store->sys->pread(fd, out->bytes + *len, (size_t)st.st_size - *len,
                                    (off_t)*len)) > 0)
        *len += (size_t)got;
    out->bytes[*len] = '\0';
    return got < 0 ? cannot(store, "read", path, err) : HF_OK;
}

enum hf_status hf__record_read(struct file_store *store, const char *path, const char *name,
                               struct record_copy *out, struct hf_error *err)
{
    enum hf_status status;
    size_t len;
    int fd;

    memset(out, 0, sizeof *out);
    /* Not blocking, should it be a FIFO. */
    fd = store->sys->openat(store->dir_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0)
        return errno == ENOENT ? HF_OK : cannot(store, "open", path, err);
    status = read_bytes(store, fd, path, out, &len, err);
    (void)close(fd);
    if (status != HF_OK)
        return status;
    out->found = hf__record_parse(out->bytes, len, path, out) &&
                 (name == NULL || strcmp(name, out->name) == 0);
    if (!out->found)
        return damaged(store, path, err);
    out->bytes[(size_t)(out->value - out->bytes) + out->head.value_len] = '\0';
    return HF_OK;
}

void hf__record_copy_release(struct record_copy *copy)
{
    free(copy->bytes);
    copy->bytes = NULL;
}

static enum hf_status sync_folder(struct file_store *store, const char *path, struct hf_error *err)
{
    int fd = openat(store->dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    enum hf_status status = HF_OK;

    if (fd < 0 || store->sys->fsync(fd) != 0)
        status = cannot(store, "sync", path, err);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

enum hf_status hf__record_sync(struct file_store *store, const char *name, struct hf_error *err)
{
    char path[RECORD_PATH_SIZE];

    hf__record_shard(path, name);
    return sync_folder(store, path, err);
}

/* Whoever finds a folder cannot tell whether its name is on disk yet: its maker may have been
 * killed, or may be about to sync it. So all of it is made by whoever does not find the mark, which
 * comes last. */
enum hf_status hf__record_prepare(struct file_store *store, struct hf_error *err)
{
    char path[RECORD_PATH_SIZE];
    enum hf_status status;
    int fd;

    if (faccessat(store->dir_fd, READY, F_OK, 0) == 0)
        return HF_OK;
    if (hf__dir_make_folder(store, FOLDER) != 0)
        return cannot(store, "make", FOLDER, err);
    for (unsigned shard = 0; shard < RECORD_SHARDS; shard++) {
        shard_path(path, shard);
        if (hf__dir_make_folder(store, path) != 0)
            return cannot(store, "make", path, err);
    }
    status = sync_folder(store, FOLDER, err);
    if (status == HF_OK && store->sys->fsync(store->dir_fd) != 0)
        status = cannot(store, "sync the folder of", FOLDER, err);
    if (status != HF_OK)
        return status;
    fd = hf__dir_create(store, READY);
    if (fd < 0)
        return cannot(store, "make", READY, err);
    (void)close(fd);
    return HF_OK;
}

static size_t len_of(const struct hf_record_write *write)
{
    return sizeof(struct record_head) + strlen(write->name) + strlen(write->key) + write->value_len;
}

static void compose(struct file_store *store, const struct hf_record_write *write, char *bytes)
{
    int64_t now_ms = store->base.host->wall_us() / 1000;
    struct record_head head = {.version = VERSION,
                               .name_len = (uint32_t)strlen(write->name),
                               .key_len = (uint32_t)strlen(write->key),
                               .value_len = (uint32_t)write->value_len,
                               .token = write->token,
                               .number = write->number,
                               .written_ms = now_ms,
                               .until_ms = write->keep_ms > 0 ? now_ms + write->keep_ms : 0};
    char *at = bytes + sizeof head;

    memcpy(head.magic, magic, sizeof magic);
    memcpy(at, write->name, head.name_len);
    memcpy(at + head.name_len, write->key, head.key_len);
    memcpy(at + head.name_len + head.key_len, write->value, write->value_len);
    memcpy(bytes, &head, sizeof head);
    head.sum = sum_of(bytes, len_of(write));
    memcpy(bytes, &head, sizeof head);
}

static enum hf_status write_draft(struct file_store *store, const char *path, const char *bytes,
                                  size_t len, struct hf_error *err)
{
    const struct hf__file_sys *sys = store->sys;
    int fd = sys->openat(store->dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         hf__dir_mode(store));
    enum hf_status status = HF_OK;

    if (fd < 0)
        return cannot(store, "create", path, err);
    (void)fchmod(fd, hf__dir_mode(store)); /* whatever the umask */
    if (!hf__write_all(sys, fd, bytes, len, 0) || sys->fsync(fd) != 0) {
        status = cannot(store, "write", path, err);
        (void)unlinkat(store->dir_fd, path, 0); /* gives back what room it took */
    }
    (void)close(fd);
    return status;
}

enum hf_status hf__record_draft(struct file_store *store, const struct hf_record_write *first,
                                const struct hf_record_write *write, char path[RECORD_PATH_SIZE],
                                struct hf_error *err)
{
    unsigned serial = (unsigned)atomic_fetch_add(&store->drafts, 1);
    size_t skip = first != NULL ? len_of(first) : 0;
    char *bytes = malloc(skip + len_of(write));
    enum hf_status status;

    (void)snprintf(path, RECORD_PATH_SIZE, FOLDER "/%02x/.%016" PRIx64 "-%u", shard_of(write->name),
                   store->client, serial);
    if (bytes == NULL)
        return hf__nomem(err);
    if (first != NULL)
        compose(store, first, bytes);
    compose(store, write, bytes + skip);
    status = write_draft(store, path, bytes, skip + len_of(write), err);
    free(bytes);
    return status;
}
