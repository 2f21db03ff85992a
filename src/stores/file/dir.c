/* dir.c - the directory of an embedded store: where it is, whether it can be trusted. */
#include "stores/file/dir.h"
#include "base/backoff.h"
#include "base/base.h"
#include "stores/file/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems that other machines may share: their locks or their cache do not hold across them.
 * Those that <linux/magic.h> does not name are given by number. */
static const struct {
    unsigned long magic;
    const char *name;
} networks[] = {
    {NFS_SUPER_MAGIC, "NFS"}, {SMB_SUPER_MAGIC, "SMB"}, {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},     {AFS_SUPER_MAGIC, "AFS"}, {CODA_SUPER_MAGIC, "Coda"},
    {V9FS_MAGIC, "9p"},       {0x65735546, "FUSE"},     {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"},   {0x01161970, "GFS2"},     {0x7461636f, "OCFS2"},
    {0x47504653, "GPFS"},     {0xaad7aaea, "PanFS"},    {0x564c, "NCP"},
};

#define PARENTS_MAX       64     /* directories above the store's */
#define LOCK_PAUSE_MIN_NS 100000 /* between two tries to lock it */
#define LOCK_PAUSE_MAX_NS 10000000

/* The end of a path says more than its beginning. */
static void show_path(char out[PATH_SHOWN_MAX + 1], const char *path)
{
    size_t len = strlen(path);

    if (len <= PATH_SHOWN_MAX)
        memcpy(out, path, len + 1);
    else
        (void)snprintf(out, PATH_SHOWN_MAX + 1, "...%s", path + len - (PATH_SHOWN_MAX - 3));
}

static void show(struct file_store *store)
{
    (void)snprintf(store->shown, sizeof store->shown, "file:");
    show_path(store->shown + 5, store->path);
}

/* The umask may take the group's rights away, and even our own. */
static int make_dir(const char *path, mode_t mode)
{
    return mkdir(path, mode) == 0 ? chmod(path, mode) : -1;
}

/* The directory that could not be made is named: it may be far above. */
static enum hf_status make_named(const struct file_store *store, const char *path, mode_t mode,
                                 struct hf_error *err)
{
    char shown[PATH_SHOWN_MAX + 1];

    if (make_dir(path, mode) == 0 || errno == EEXIST)
        return HF_OK;
    show_path(shown, path);
    return hf__fail_lock(err, hf__error_status(errno), NULL, store->shown, ": cannot create %s: %s",
                         shown, strerror(errno));
}

/* mkdir -p; parents are private too. */
static enum hf_status make_dirs(struct file_store *store, mode_t mode, struct hf_error *err)
{
    enum hf_status status = HF_OK;

    for (char *at = store->path + 1; *at != '\0' && status == HF_OK; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        status = make_named(store, store->path, 0700, err);
        *at = '/';
    }
    return status == HF_OK ? make_named(store, store->path, mode, err) : status;
}

bool hf__dir_network(int fd, const char **name)
{
    struct statfs fs;

    *name = NULL;
    if (fstatfs(fd, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if ((uint32_t)fs.f_type == (uint32_t)networks[i].magic)
            *name = networks[i].name;
    return true;
}

static enum hf_status check_network(const struct file_store *store, struct hf_error *err)
{
    const char *network;

    if (!hf__dir_network(store->dir_fd, &network))
        return hf__error_fail(store, "examine the file system", errno, err);
    if (network == NULL)
        return HF_OK;
    return hf__fail_lock(err, HF_UNSUPPORTED, NULL, store->shown,
                         " is on a network file system (%s), where locks do not hold: use a local "
                         "directory, or a store made for several machines",
                         network);
}

/* Root sees everything anyway. */
static bool root_reads(const struct file_store *store)
{
    return store->readonly && geteuid() == 0;
}

static enum hf_status check_owner(struct file_store *store, struct hf_error *err)
{
    struct stat st;

    if (fstat(store->dir_fd, &st) != 0)
        return hf__error_fail(store, "examine it", errno, err);
    store->uid = st.st_uid;
    store->gid = st.st_gid;
    if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) != 0)
        return hf__fail_lock(err, HF_DENIED, NULL, store->shown,
                             ": this directory is for everybody: use one of your own "
                             "below it, such as file:%s/holdfast",
                             hf__shown_path(store));
    if (!store->shared && st.st_uid != geteuid() && !root_reads(store))
        return hf__fail_lock(
            err, HF_DENIED, NULL, store->shown,
            " belongs to user %ld, and this process is user %ld: use a directory of "
            "your own, or ?shared=group",
            (long)st.st_uid, (long)geteuid());
    if ((st.st_mode & S_IWOTH) != 0 || (!store->shared && (st.st_mode & S_IWGRP) != 0))
        return hf__fail_lock(err, HF_DENIED, NULL, store->shown,
                             " can be written by others: chmod %s %s",
                             store->shared ? "o-w" : "go-w", hf__shown_path(store));
    return HF_OK;
}

/* The path from the root. One that is not there, and is only looked at, is taken as it is written.
 */
static char *absolute_path(const struct file_store *store)
{
    char *here = NULL;
    char *path = NULL;

    if (store->dir_fd >= 0)
        return realpath(store->path, NULL);
    if (store->path[0] == '/')
        return strdup(store->path);
    here = getcwd(NULL, 0);
    if (here != NULL && asprintf(&path, "%s/%s", here, store->path) < 0) {
        path = NULL;
        errno = ENOMEM;
    }
    free(here);
    return path;
}

/* Makes the path absolute, for processes that start elsewhere, and the url from it. */
static enum hf_status settle_path(struct file_store *store, struct hf_error *err)
{
    char *path = absolute_path(store);
    char encoded[3 * PATH_MAX];
    size_t used = 0;

    if (path == NULL)
        return errno == ENOMEM ? hf__nomem(err)
                               : hf__error_fail(store, "resolve the path", errno, err);
    free(store->path);
    store->path = path;
    show(store);
    for (; *path != '\0' && used + 4 < sizeof encoded; path++) {
        /* Only what would be taken for something else; people read this. */
        if (strchr("%?#", *path) != NULL)
            used += (size_t)snprintf(encoded + used, sizeof encoded - used, "%%%02X",
                                     (unsigned)(unsigned char)*path);
        else
            encoded[used++] = *path;
    }
    encoded[used] = '\0';
    if (asprintf(&store->url, "file:%s%s", encoded, store->shared ? "?shared=group" : "") < 0) {
        store->url = NULL;
        return hf__nomem(err);
    }
    if (strlen(store->url) >= HF__URL_MAX)
        return hf__fail(err, HF_INVALID,
                        "the path of the embedded store is too long: its URL has %zu bytes, and "
                        "at most %d are possible",
                        strlen(store->url), HF__URL_MAX - 1);
    return HF_OK;
}

enum hf_status hf__dir_open(struct file_store *store, struct hf_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    mode_t mode = store->shared ? 02770 : 0700;
    enum hf_status status;

    show(store);
    store->dir_fd = open(store->path, flags);
    if (store->dir_fd < 0 && errno == ENOENT && store->readonly)
        return settle_path(store, err);
    if (store->dir_fd < 0 && errno == ENOENT) {
        status = make_dirs(store, mode, err);
        if (status != HF_OK)
            return status;
        store->dir_fd = open(store->path, flags);
        /* Behind a trailing slash the last one was made like a parent. */
        if (store->dir_fd >= 0 && store->shared)
            (void)fchmod(store->dir_fd, mode);
    }
    if (store->dir_fd < 0)
        return hf__error_fail(store, "open the directory", errno, err);
    status = check_owner(store, err);
    if (status == HF_OK)
        status = check_network(store, err);
    return status == HF_OK ? settle_path(store, err) : status;
}

enum hf_status hf__dir_sync_parents(struct file_store *store, struct hf_error *err)
{
    struct stat here;
    struct stat above;
    enum hf_status status = HF_OK;
    int at = fcntl(store->dir_fd, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < PARENTS_MAX && at >= 0 && status == HF_OK; i++) {
        int up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool more = up >= 0 && fstat(at, &here) == 0 && fstat(up, &above) == 0 &&
                    here.st_dev == above.st_dev && here.st_ino != above.st_ino;

        (void)close(at);
        at = up;
        if (!more)
            break;
        if (store->sys->fsync(up) != 0 && errno != EINVAL && errno != EROFS)
            status = hf__error_fail(store, "make it safe against loss of power", errno, err);
    }
    if (at >= 0)
        (void)close(at);
    return status;
}

enum hf_status hf__dir_lock(struct file_store *store, int operation, int64_t deadline_ns,
                            struct hf_error *err)
{
    struct hf__backoff tries = {.first_ns = LOCK_PAUSE_MIN_NS, .most_ns = LOCK_PAUSE_MAX_NS};
    int64_t now_ns;
    uint32_t dice;

    while (flock(store->dir_fd, operation | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return hf__error_fail(store, "lock the directory", errno, err);
        now_ns = store->base.host->now_ns();
        if (now_ns >= deadline_ns)
            return hf__fail_lock(err, operation == LOCK_EX ? HF_BUSY : HF_UNREACHABLE, NULL,
                                 store->shown, " is in use by another process");
        store->base.host->random(&dice, sizeof dice);
        hf__sleep_ns(hf__backoff_failed(&tries, now_ns, dice) - now_ns);
    }
    return HF_OK;
}

DIR *hf__dir_folder(const struct file_store *store, const char *folder)
{
    int fd = openat(store->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL && fd >= 0) {
        int error = errno;

        (void)close(fd);
        errno = error;
    }
    return dir;
}

enum hf_status hf__dir_no_folder(const struct file_store *store, int error, struct hf_error *err)
{
    if (error == ENOENT)
        return HF_OK;
    return error == ENOMEM ? hf__nomem(err)
                           : hf__error_fail(store, "read the directory", error, err);
}

/* The next entry whose name starts with prefix; NULL: there is none. */
static const char *next_named(DIR *dir, const char *prefix)
{
    struct dirent *entry;

    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            return entry->d_name;
    return NULL;
}

static enum hf_status remove_all(const struct file_store *store, const char *folder,
                                 const char *prefix, struct hf_error *err)
{
    DIR *dir = hf__dir_folder(store, folder);
    const char *name;

    if (dir == NULL)
        return hf__dir_no_folder(store, errno, err);
    while ((name = next_named(dir, prefix)) != NULL)
        (void)unlinkat(dirfd(dir), name, 0);
    (void)closedir(dir);
    return HF_OK;
}

enum hf_status hf__dir_has_slots(const struct file_store *store, const char *except, bool *out,
                                 struct hf_error *err)
{
    DIR *dir = hf__dir_folder(store, ".");
    const char *name;

    *out = false;
    if (dir == NULL)
        return hf__dir_no_folder(store, errno, err);
    while (!*out && (name = next_named(dir, SLOTS_PREFIX)) != NULL)
        *out = except == NULL || strcmp(name, except) != 0;
    (void)closedir(dir);
    return HF_OK;
}

enum hf_status hf__dir_discard(struct file_store *store, struct hf_error *err)
{
    enum hf_status status = remove_all(store, "alive", "", err);

    if (status == HF_OK)
        status = remove_all(store, "queue", "", err);
    /* Last, so that a discard that failed half-way is seen and done again. */
    if (status == HF_OK)
        status = remove_all(store, ".", SLOTS_PREFIX, err);
    return status;
}

/* A name that nobody else uses, for what is not in place yet: in the directory itself, also for
 * what belongs below it. */
static void draft_name(const struct file_store *store, char *out, size_t size, const char *name)
{
    (void)snprintf(out, size, ".%s-%016" PRIx64, name, store->client);
    for (; *out != '\0'; out++)
        if (*out == '/')
            *out = '-';
}

int hf__dir_create(struct file_store *store, const char *name)
{
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    char draft[64];
    int fd = openat(store->dir_fd, name, flags);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    draft_name(store, draft, sizeof draft, name);
    fd = openat(store->dir_fd, draft, flags | O_CREAT | O_EXCL, hf__dir_mode(store));
    if (fd < 0)
        return -1;
    (void)fchmod(fd, hf__dir_mode(store));
    (void)close(fd);
    (void)!linkat(store->dir_fd, draft, store->dir_fd, name, 0); /* or another one was faster */
    (void)unlinkat(store->dir_fd, draft, 0);
    return openat(store->dir_fd, name, flags);
}

int hf__dir_make_folder(struct file_store *store, const char *name)
{
    char draft[64];
    int error;

    if (!store->shared) {
        if (mkdirat(store->dir_fd, name, 0700) == 0)
            return fchmodat(store->dir_fd, name, 0700, 0);
        return errno == EEXIST ? 0 : -1;
    }
    draft_name(store, draft, sizeof draft, name);
    if (mkdirat(store->dir_fd, draft, 02770) != 0)
        return -1;
    (void)!fchmodat(store->dir_fd, draft, 02770, 0);
    /* Not in place of another's, be it empty: somebody may be about to make a FIFO in there. */
    if (renameat2(store->dir_fd, draft, store->dir_fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    error = errno;
    (void)unlinkat(store->dir_fd, draft, AT_REMOVEDIR);
    errno = error;
    return error == EEXIST ? 0 : -1;
}

mode_t hf__dir_mode(const struct file_store *store)
{
    return store->shared ? 0660 : 0600;
}

bool hf__dir_trusts(const struct file_store *store, const struct stat *st)
{
    if ((st->st_mode & S_IWOTH) != 0)
        return false;
    if (store->shared)
        return st->st_gid == store->gid || st->st_uid == geteuid();
    if (st->st_uid != geteuid() && !(root_reads(store) && st->st_uid == store->uid))
        return false;
    return (st->st_mode & S_IWGRP) == 0;
}
