/* record_sweep.c - removing records that have expired.
 *
 * This is nobody's job in particular: each write does a bounded part of it. The files it looks at
 * are chosen at random, so that those at the front of a folder do not hide the others. */
#include "stores/file/record_sweep.h"
#include "base/base.h"
#include "stores/file/dir.h"
#include "stores/file/page.h"
#include "stores/file/record_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ONE_IN    8    /* writes that sweep, of those that leave something to sweep one day ... */
#define ONE_IN_B  64   /* ... and of the others: there are drafts of the dead */
#define NAMES_MAX 8192 /* in a folder, of which some are drawn */
#define LOOKS     32   /* files that one sweep looks at */
#define AGE_S     3600 /* how long a draft is left alone: its writer may be at work */

/* Of the files in a folder. */
struct sample {
    char names[LOOKS][RECORD_PATH_SIZE];
    size_t count;
};

bool hf__record_expired(int64_t until_ms, int64_t now_ms)
{
    return until_ms != 0 && until_ms <= now_ms;
}

/* Each of the first NAMES_MAX names has the same chance. */
static void draw(struct file_store *store, const char *folder, struct sample *sample)
{
    DIR *dir = hf__dir_folder(store, folder);
    struct dirent *entry;

    sample->count = 0;
    if (dir == NULL)
        return;
    for (uint32_t seen = 0; seen < NAMES_MAX && (entry = readdir(dir)) != NULL;) {
        size_t at = sample->count;
        uint32_t dice;

        if (strlen(entry->d_name) < 4 || strlen(entry->d_name) >= RECORD_PATH_SIZE - 16)
            continue; /* . and .., and nothing of ours */
        seen++;
        if (at == LOOKS) {
            store->base.host->random(&dice, sizeof dice);
            at = dice % seen;
        } else {
            sample->count++;
        }
        if (at < LOOKS)
            (void)snprintf(sample->names[at], sizeof sample->names[at], "%.16s/%.70s", folder,
                           entry->d_name);
    }
    (void)closedir(dir);
}

static void remove_old_draft(struct file_store *store, const char *path)
{
    struct stat st;

    if (fstatat(store->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
        store->base.host->wall_us() / 1000000 - st.st_mtime > AGE_S)
        (void)unlinkat(store->dir_fd, path, 0);
}

/* *name: whose it is. */
static bool is_expired(struct file_store *store, const char *path, char name[HF_NAME_MAX + 1])
{
    struct record_copy copy;
    bool expired = hf__record_read(store, path, NULL, &copy, NULL) == HF_OK && copy.found &&
                   hf__record_expired(copy.head.until_ms, store->base.host->wall_us() / 1000);

    memcpy(name, copy.name, sizeof copy.name);
    hf__record_copy_release(&copy);
    return expired;
}

/* With the lock of its page, or a new record could come in its place between the look and the
 * end. A page that is in use is left for another time. */
static void remove_expired(struct file_store *store, const char *path)
{
    char name[HF_NAME_MAX + 1];
    struct bucket bucket;

    if (!is_expired(store, path, name) ||
        hf__page_lock(store, hf__name_hash(name), store->base.host->now_ns(), &bucket, NULL) !=
            HF_OK)
        return;
    if (is_expired(store, path, name))
        (void)unlinkat(store->dir_fd, path, 0);
    hf__page_unlock(store, &bucket);
}

void hf__record_sweep(struct file_store *store, const char *name)
{
    char folder[RECORD_PATH_SIZE];
    struct sample sample;

    hf__record_shard(folder, name);
    draw(store, folder, &sample);
    for (size_t i = 0; i < sample.count; i++) {
        if (strrchr(sample.names[i], '/')[1] == '.')
            remove_old_draft(store, sample.names[i]);
        else
            remove_expired(store, sample.names[i]);
    }
}

void hf__record_sweep_sometimes(struct file_store *store, const char *name, bool expires)
{
    unsigned char dice;

    store->base.host->random(&dice, sizeof dice);
    if (dice % (expires ? ONE_IN : ONE_IN_B) == 0)
        hf__record_sweep(store, name);
}
