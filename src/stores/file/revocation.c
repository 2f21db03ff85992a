/* revocation.c - who broke a hold, when and why. */
#include "stores/file/revocation.h"
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/errors.h"
#include "stores/file/page.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER    "broken"
#define PATH_SIZE sizeof FOLDER "/0123456789abcdef-0123456789abcdef"
#define SUM_SEED  0x62726f6b656eu
#define LOOKS     64                               /* files that one sweep looks at */
#define FILES_MAX 10000                            /* that are looked at for the last one */
#define AGE_S     (HF_TTL_MAX_MS / 1000 + 60 * 60) /* no broken hold lasts this long */

/* One pwrite within one page of the page cache, as of a slot: whole or not at all. */
struct revocation_file {
    uint64_t sum; /* of all that follows */
    uint64_t token;
    int64_t at_ms;
    char name[HF_NAME_MAX + 1];
    char by[HF_LABEL_MAX + 1];
    char reason[HF_REASON_MAX + 1];
    char padding[5];
};
_Static_assert(sizeof(struct revocation_file) == 552, "a revocation has no holes");

static uint64_t sum_of(const struct revocation_file *file)
{
    return hf__hash64(&file->token, sizeof *file - sizeof file->sum, SUM_SEED);
}

static void path_of(char out[PATH_SIZE], const char *name, uint64_t token)
{
    (void)snprintf(out, PATH_SIZE, FOLDER "/%016" PRIx64 "-%016" PRIx64, hf__name_hash(name),
                   token);
}

enum hf_status hf__revocation_write(struct file_store *store, const struct view *view,
                                    const struct hf_revoke *revoke, struct hf_error *err)
{
    struct revocation_file file = {.token = view->token,
                                   .at_ms = store->base.host->wall_us() / 1000};
    enum hf_status status = HF_OK;
    char path[PATH_SIZE];
    int fd;

    memcpy(file.name, view->name, sizeof file.name);
    hf__copy_printable(file.by, sizeof file.by, revoke->by);
    hf__copy_printable(file.reason, sizeof file.reason, revoke->reason);
    file.sum = sum_of(&file);
    path_of(path, file.name, file.token);
    fd = hf__dir_create(store, path);
    if (fd < 0 && errno == ENOENT && hf__dir_make_folder(store, FOLDER) == 0)
        fd = hf__dir_create(store, path);
    if (fd < 0 || !hf__write_all(store->sys, fd, &file, sizeof file, 0))
        status = hf__error_fail(store, "put down who breaks a lock", errno, err);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

bool hf__revocation_read(struct file_store *store, const char *name, uint64_t token,
                         struct hf_revocation *out)
{
    struct revocation_file file;
    char path[PATH_SIZE];

    memset(out, 0, sizeof *out);
    path_of(path, name, token);
    if (hf__read_small(store->sys, store->dir_fd, path, &file, sizeof file) !=
            (ssize_t)sizeof file ||
        file.sum != sum_of(&file) || file.token != token ||
        strncmp(file.name, name, sizeof file.name) != 0)
        return false;
    file.by[HF_LABEL_MAX] = '\0';
    file.reason[HF_REASON_MAX] = '\0';
    hf__copy_printable(out->by, sizeof out->by, file.by);
    hf__copy_printable(out->reason, sizeof out->reason, file.reason);
    out->at_ms = file.at_ms;
    return true;
}

void hf__revocation_last(struct file_store *store, const char *name, struct hf_revocation *out)
{
    DIR *dir = store->dir_fd >= 0 ? hf__dir_folder(store, FOLDER) : NULL;
    uint64_t hash = hf__name_hash(name);
    uint64_t last = 0;
    struct dirent *entry;

    memset(out, 0, sizeof *out);
    for (int looks = 0; dir != NULL && looks < FILES_MAX && (entry = readdir(dir)) != NULL;
         looks++) {
        uint64_t of, token;

        if (sscanf(entry->d_name, "%16" SCNx64 "-%16" SCNx64, &of, &token) == 2 && of == hash &&
            token > last)
            last = token;
    }
    if (dir != NULL)
        (void)closedir(dir);
    if (last != 0)
        (void)hf__revocation_read(store, name, last, out);
}

void hf__revocation_sweep(struct file_store *store)
{
    DIR *dir = hf__dir_folder(store, FOLDER);
    struct dirent *entry;

    if (dir == NULL)
        return;
    for (int looks = 0; looks < LOOKS && (entry = readdir(dir)) != NULL; looks++) {
        char path[300];
        struct stat st;

        (void)snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
        if (fstatat(store->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            store->base.host->wall_us() / 1000000 - st.st_mtime > AGE_S)
            (void)unlinkat(store->dir_fd, path, 0);
    }
    (void)closedir(dir);
}
