/* sidecar.c - finding, creating, locking and changing the sidecar of a fenced file. */
#include "base/backoff.h"
#include "fence/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINK_HOPS_MAX = 8,          /* symbolic links followed inside the directory */
    REOPEN_MAX = 100,           /* times a sidecar may vanish under us before we give up */
    FIRST_SEQ = 1,              /* of the record that a new sidecar starts with */
    LOCK_PAUSE_MIN_NS = 200000, /* between two tries to lock */
    LOCK_PAUSE_MAX_NS = 10000000
};

static enum hf_status resolve(struct hf__fence_file *file, const char *base, struct hf_error *err);
static enum hf_status open_sidecar(struct hf__fence_file *file, int *out, struct hf_error *err);
static enum hf_status create_sidecar(struct hf__fence_file *file, struct hf_error *err);
static enum hf_status check_sidecar(struct hf__fence_file *file, int fd, struct hf_error *err);
static enum hf_status wait_for_lock(struct hf__fence_file *file, int fd, int64_t deadline_ns,
                                    struct hf_error *err);

enum hf_status hf__fence_open(struct hf__fence_file *file, const struct hf__fence_io *io,
                              const char *path, struct hf_error *err)
{
    char dir[PATH_MAX];
    const char *base;
    const char *slash;
    enum hf_status status;

    *file = (struct hf__fence_file){.io = io, .path = path, .dir = -1, .sidecar = -1};
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof dir)
        return hf__fail(err, HF_INVALID, "a fenced file needs a path of 1 to %d bytes",
                        PATH_MAX - 1);
    slash = strrchr(path, '/');
    base = slash != NULL ? slash + 1 : path;
    if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return hf__fail(err, HF_INVALID, "%s is a directory, not a file that can be fenced", path);
    (void)snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
                   slash != NULL ? path : ".");
    file->dir = io->open_dir(io, dir);
    if (file->dir < 0) {
        int rc = file->dir;

        file->dir = -1;
        return hf__fence_io_fail(err, rc, "open the directory of", path);
    }
    status = resolve(file, base, err);
    if (status != HF_OK)
        hf__fence_close(file);
    return status;
}

void hf__fence_close(struct hf__fence_file *file)
{
    if (file->sidecar >= 0)
        (void)file->io->close(file->io, file->sidecar);
    if (file->dir >= 0)
        (void)file->io->close(file->io, file->dir);
    file->sidecar = -1;
    file->dir = -1;
}

enum hf_status hf__fence_lock(struct hf__fence_file *file, int64_t wait_ms, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    int64_t start = hf__now_ns();
    int64_t wait_ns = wait_ms < 0 ? 0 : hf__ms_to_ns(wait_ms == 0 ? HF_FENCE_WAIT_MS : wait_ms);

    for (int tries = 0; tries < REOPEN_MAX; tries++) {
        struct stat mine;
        struct stat named;
        int fd = -1;
        enum hf_status status = open_sidecar(file, &fd, err);

        if (status == HF_OK) {
            status = wait_for_lock(file, fd, hf__time_add(start, wait_ns), err);
            /* Whoever removed the sidecar while we waited made our lock worthless. */
            if (status == HF_OK && io->stat_fd(io, fd, &mine) == 0 &&
                io->stat(io, file->dir, file->sidecar_name, &named) == 0 &&
                mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
                file->sidecar = fd;
                return HF_OK;
            }
            (void)io->close(io, fd);
        }
        if (status != HF_OK)
            return status;
    }
    return hf__fail(err, HF_BUSY, "the sidecar of %s is being removed again and again", file->path);
}

enum hf_status hf__fence_load(struct hf__fence_file *file, struct hf_error *err)
{
    char slots[HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE];
    ssize_t got = file->io->pread(file->io, file->sidecar, slots, sizeof slots, 0);

    if (got < 0)
        return hf__fence_io_fail(err, got, "read the fence of", file->path);
    if (!hf__fence_record_newest(slots, (size_t)got, &file->record, &file->unsettled))
        return hf__fail(err, HF_CORRUPT,
                        "the fence of %s is damaged and its mark is lost: when no old holder is "
                        "left, run \"holdfast fence reset %s --reason TEXT\"",
                        file->path, file->path);
    return HF_OK;
}

enum hf_status hf__fence_save(struct hf__fence_file *file, bool durable, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    char slot[HF__FENCE_SLOT_SIZE];
    bool first = file->record.seq <= FIRST_SEQ;
    ssize_t rc;

    file->record.seq++;
    hf__fence_record_encode(slot, &file->record);
    rc = hf__fence_write_all(io, file->sidecar, slot, sizeof slot,
                             (off_t)(file->record.seq % HF__FENCE_SLOTS) * HF__FENCE_SLOT_SIZE);
    if (rc >= 0 && durable)
        rc = io->sync(io, file->sidecar, true);
    /* Another process may have created the sidecar and not got as far as making its name last. */
    if (rc >= 0 && durable && first)
        rc = io->sync(io, file->dir, false);
    if (rc < 0)
        return hf__fence_io_fail(err, rc, "raise the fence of", file->path);
    return HF_OK;
}

enum hf_status hf__fence_pass(struct hf__fence_file *file, const struct hf_fence_pass *pass,
                              struct hf_error *err)
{
    char issuer[HF_FENCE_ISSUER_MAX + 1];
    enum hf_fence_verdict verdict;
    bool save;
    enum hf_status status;

    status = hf__fence_lock(file, pass->wait_ms, err);
    if (status == HF_OK)
        status = hf__fence_load(file, err);
    if (status != HF_OK)
        return status;
    hf__fence_settle(&file->record.mark, pass->issuer, hf__fence_url(pass), issuer);
    verdict = hf_fence_decide(&file->record.mark, pass->token, issuer, hf__wall_us());
    status = hf_fence_refuse(verdict, &file->record.mark, pass, file->path, err);
    if (status != HF_OK)
        return status;
    save = verdict == HF_FENCE_RAISE || file->unsettled || file->record.pending.len > 0;
    if (file->record.pending.len > 0)
        status = hf__fence_recover(file, err);
    if (status == HF_OK && save)
        status = hf__fence_save(file, true, err);
    return status;
}

enum hf_status hf__fence_io_fail(struct hf_error *err, ssize_t rc, const char *what,
                                 const char *path)
{
    int number = (int)-rc;
    enum hf_status code = HF_UNREACHABLE;

    if (number == EACCES || number == EPERM || number == EROFS || number == ELOOP)
        code = HF_DENIED;
    else if (number == ENOMEM)
        code = HF_NOMEM;
    else if (number == ENAMETOOLONG || number == EISDIR)
        code = HF_INVALID;
    return hf__fail(err, code, "cannot %s %s: %s", what, path, strerror(number));
}

/* Follows links as long as they stay in the directory, so that one file has one sidecar under all
 * of its names. */
static enum hf_status resolve(struct hf__fence_file *file, const char *base, struct hf_error *err)
{
    char target[HF__FENCE_NAME_SIZE];
    struct stat st;

    for (int hops = 0;; hops++) {
        int rc;
        ssize_t len;

        if (strlen(base) > HF__FENCE_BASE_MAX)
            return hf__fail(err, HF_INVALID, "%s: a fenced file's name has at most %d bytes",
                            file->path, HF__FENCE_BASE_MAX);
        (void)snprintf(file->name, sizeof file->name, "%s", base);
        (void)snprintf(file->sidecar_name, sizeof file->sidecar_name, ".%.*s.fence",
                       HF__FENCE_BASE_MAX, file->name);
        rc = file->io->stat(file->io, file->dir, file->name, &st);
        if (rc == -ENOENT)
            return HF_OK;
        if (rc < 0)
            return hf__fence_io_fail(err, rc, "look at", file->path);
        if (S_ISREG(st.st_mode))
            return HF_OK;
        if (!S_ISLNK(st.st_mode))
            return hf__fail(err, HF_INVALID, "%s is not a regular file, so it cannot be fenced",
                            file->path);
        len = file->io->read_link(file->io, file->dir, file->name, target, sizeof target - 1);
        if (len < 0)
            return hf__fence_io_fail(err, len, "read the link", file->path);
        target[len] = '\0';
        base = strncmp(target, "./", 2) == 0 ? target + 2 : target;
        if (hops == LINK_HOPS_MAX || strchr(base, '/') != NULL || base[0] == '\0' ||
            strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
            return hf__fail(err, HF_DENIED,
                            "%s is a symbolic link out of its directory: fence the file it "
                            "points to, under its real path",
                            file->path);
    }
}

static enum hf_status open_sidecar(struct hf__fence_file *file, int *out, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    enum hf_status status = HF_OK;
    int fd = -ENOENT;

    for (int tries = 0; tries < REOPEN_MAX && status == HF_OK; tries++) {
        fd = io->open(io, file->dir, file->sidecar_name, O_RDWR, 0);
        if (fd != -ENOENT)
            break;
        status = create_sidecar(file, err);
    }
    if (status != HF_OK)
        return status;
    if (fd < 0)
        return hf__fence_io_fail(err, fd, "open the fence of", file->path);
    status = check_sidecar(file, fd, err);
    if (status != HF_OK)
        (void)io->close(io, fd);
    else
        *out = fd;
    return status;
}

/* In a directory that a group may write, the group raises the mark, whatever the umask of the
 * member that came first. */
static int share_with_group(struct hf__fence_file *file, int fd)
{
    struct stat dir;
    struct stat st;

    if (file->io->stat_fd(file->io, file->dir, &dir) < 0 ||
        file->io->stat_fd(file->io, fd, &st) < 0 || (dir.st_mode & S_IWGRP) == 0)
        return 0;
    st.st_gid = dir.st_gid;
    st.st_mode = S_IFREG | 0664;
    return file->io->set_attributes(file->io, fd, &st);
}

/* A sidecar gets its name only when it is whole and durable: it always has a valid record. */
static enum hf_status create_sidecar(struct hf__fence_file *file, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    struct hf__fence_record record = {.seq = FIRST_SEQ};
    char slots[HF__FENCE_SLOTS * HF__FENCE_SLOT_SIZE];
    char temp[HF__FENCE_NAME_SIZE] = "";
    int fd;
    enum hf_status status = hf__fence_spool_open(file, &fd, temp, 0664, err);
    ssize_t rc;

    if (status != HF_OK)
        return status;
    for (int i = 0; i < HF__FENCE_SLOTS; i++)
        hf__fence_record_encode(slots + (size_t)i * HF__FENCE_SLOT_SIZE, &record);
    rc = hf__fence_write_all(io, fd, slots, sizeof slots, 0);
    if (rc >= 0)
        rc = share_with_group(file, fd);
    if (rc >= 0)
        rc = io->sync(io, fd, false);
    if (rc >= 0)
        rc = io->link(io, file->dir, fd, temp[0] != '\0' ? temp : NULL, file->sidecar_name);
    if (rc == -EEXIST)
        rc = 0; /* another process was quicker, with the same content */
    if (temp[0] != '\0')
        (void)io->unlink(io, file->dir, temp);
    (void)io->close(io, fd);
    return rc < 0 ? hf__fence_io_fail(err, rc, "create the fence of", file->path) : HF_OK;
}

static enum hf_status check_sidecar(struct hf__fence_file *file, int fd, struct hf_error *err)
{
    struct stat dir;
    struct stat st;

    if (file->io->stat_fd(file->io, fd, &st) < 0 ||
        file->io->stat_fd(file->io, file->dir, &dir) < 0)
        return hf__fail(err, HF_UNREACHABLE, "cannot look at the fence of %s", file->path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & S_IWOTH) != 0 || st.st_nlink > 1)
        return hf__fail(err, HF_DENIED,
                        "the fence of %s is not safe: %s must be a regular file with one name, not "
                        "writable by everybody",
                        file->path, file->sidecar_name);
    /* Whoever may write the directory may put any sidecar there: it is as safe as that group. */
    if (st.st_uid != geteuid() && st.st_uid != 0 && st.st_uid != dir.st_uid &&
        ((dir.st_mode & S_IWGRP) == 0 || (dir.st_mode & S_IWOTH) != 0 || st.st_gid != dir.st_gid))
        return hf__fail(err, HF_DENIED,
                        "the fence of %s is not safe: %s belongs to neither you, root, the owner "
                        "of the directory nor a group that may write it",
                        file->path, file->sidecar_name);
    return HF_OK;
}

/* Tried with a deadline, never waited for blindly: a writer may be stopped while it is inside. */
static enum hf_status wait_for_lock(struct hf__fence_file *file, int fd, int64_t deadline_ns,
                                    struct hf_error *err)
{
    struct hf__backoff tries = {.first_ns = LOCK_PAUSE_MIN_NS, .most_ns = LOCK_PAUSE_MAX_NS};

    for (;;) {
        int rc = file->io->try_lock(file->io, fd);
        int64_t now_ns;
        uint32_t dice;

        if (rc >= 0)
            return HF_OK;
        if (rc != -EAGAIN && rc != -EACCES && rc != -EINTR)
            return hf__fence_io_fail(err, rc, "lock the fence of", file->path);
        now_ns = hf__now_ns();
        if (now_ns >= deadline_ns)
            return hf__fail(err, HF_BUSY,
                            "another process is inside the fence of %s: \"fuser %s\" in its "
                            "directory names it",
                            file->path, file->sidecar_name);
        hf__random(&dice, sizeof dice);
        file->io->sleep_ns(file->io, hf__backoff_failed(&tries, now_ns, dice) - now_ns);
    }
}

ssize_t hf__fence_write_all(const struct hf__fence_io *io, int fd, const char *data, size_t len,
                            off_t at)
{
    size_t done = 0;

    while (done < len) {
        ssize_t rc = io->pwrite(io, fd, data + done, len - done, at + (off_t)done);

        if (rc < 0)
            return rc;
        if (rc == 0)
            return -ENOSPC;
        done += (size_t)rc;
    }
    return (ssize_t)done;
}
