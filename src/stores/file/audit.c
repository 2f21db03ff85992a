/* audit.c - what can be learned about an embedded store, or the place where one would be, without a
 * change: `holdfast doctor` judges it. */
#include "base/base.h"
#include "base/fact.h"
#include "stores/file/dir.h"
#include "stores/file/floor.h"
#include "stores/file/life.h"
#include "stores/file/map.h"
#include "stores/file/open.h"
#include "stores/file/operations.h"
#include "stores/file/url.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LOOKED_AT_MAX = 10000 }; /* files of clients; more are not counted */

struct audit {
    struct file_store *store;
    struct hf__teller *teller;
    struct hf_error refused; /* code HF_OK, or why the directory is not used */
    int place_fd;            /* the directory, or the nearest above it that is there */
};

/* Of what is there: a store that is still to be made will be on the same file system. */
static void tell_place(const struct audit *audit)
{
    static const struct hf__topic topic = {"file.place", NULL, "fstatfs"};
    const char *network;

    if (hf__dir_network(audit->place_fd, &network))
        hf__tell(audit->teller, topic, "%s", network != NULL ? "network" : "local");
    else
        hf__tell_unknown(audit->teller, topic, strerror(errno));
}

static void tell_fs(const struct audit *audit)
{
    static const struct hf__topic topic = {"file.fs", NULL, "fstatfs"};
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
        {TMPFS_MAGIC, "tmpfs"},     {RAMFS_MAGIC, "ramfs"},   {OVERLAYFS_SUPER_MAGIC, "overlay"},
        {EXT4_SUPER_MAGIC, "ext4"}, {XFS_SUPER_MAGIC, "xfs"}, {BTRFS_SUPER_MAGIC, "btrfs"},
        {F2FS_SUPER_MAGIC, "f2fs"}, {0x2fc12fc1, "zfs"}};
    struct statfs fs;

    if (fstatfs(audit->place_fd, &fs) != 0) {
        hf__tell_unknown(audit->teller, topic, strerror(errno));
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((uint32_t)fs.f_type == (uint32_t)known[i].magic) {
            hf__tell(audit->teller, topic, "%s", known[i].name);
            return;
        }
    }
    hf__tell(audit->teller, topic, "0x%lx", (unsigned long)(uint32_t)fs.f_type);
}

static void tell_room(const struct audit *audit)
{
    static const struct hf__topic bytes = {"file.free", "bytes", "fstatvfs"};
    static const struct hf__topic inodes = {"file.inodes_free", NULL, "fstatvfs"};
    struct statvfs fs;

    if (fstatvfs(audit->place_fd, &fs) != 0) {
        hf__tell_unknown(audit->teller, bytes, strerror(errno));
        hf__tell_unknown(audit->teller, inodes, strerror(errno));
        return;
    }
    hf__tell(audit->teller, bytes, "%" PRIu64, (uint64_t)fs.f_bavail * fs.f_frsize);
    if (fs.f_files == 0) /* btrfs and others make them as they go */
        hf__tell(audit->teller, inodes, "%" PRId64, INT64_MAX);
    else
        hf__tell(audit->teller, inodes, "%" PRIu64, (uint64_t)fs.f_favail);
}

static void tell_rights(const struct audit *audit)
{
    static const struct hf__topic mode = {"file.mode", NULL, "fstat"};
    static const struct hf__topic owner = {"file.owner", NULL, "fstat"};
    static const struct hf__topic writable = {"file.writable", NULL, "faccessat"};
    const char *refusal = audit->refused.code == HF_DENIED ? audit->refused.text : "";
    struct stat st;

    hf__tell(audit->teller, (struct hf__topic){"file.unsafe", NULL, "fstat"}, "%s", refusal);
    if (fstat(audit->place_fd, &st) != 0) {
        hf__tell_unknown(audit->teller, mode, strerror(errno));
        hf__tell_unknown(audit->teller, owner, strerror(errno));
    } else {
        hf__tell(audit->teller, mode, "%04o", (unsigned)st.st_mode & 07777);
        hf__tell(audit->teller, owner, "%ld:%ld", (long)st.st_uid, (long)st.st_gid);
    }
    if (faccessat(audit->place_fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        hf__tell(audit->teller, writable, "yes");
    else if (errno == EACCES || errno == EROFS || errno == EPERM)
        hf__tell(audit->teller, writable, "no");
    else
        hf__tell_unknown(audit->teller, writable, strerror(errno));
}

static void tell_floor(const struct audit *audit)
{
    static const struct hf__topic topic = {"file.floor_ahead", "s", "floor"};
    uint64_t floor = 0;
    int64_t wall_us = audit->store->base.host->wall_us();
    struct hf_error err;

    if (audit->store->dir_fd < 0 || audit->refused.code != HF_OK)
        return;
    if (hf__floor_read(audit->store, &floor, &err) != HF_OK)
        hf__tell_unknown(audit->teller, topic, err.text);
    else if (floor > 0)
        hf__tell(audit->teller, topic, "%" PRId64, ((int64_t)floor - wall_us) / 1000000);
}

/* Those of waiters are left alone: to look is to read, and that may be somebody's wake-up. */
static void tell_stale(const struct audit *audit)
{
    static const struct hf__topic topic = {"file.stale", NULL, "alive/"};
    DIR *dir = hf__dir_folder(audit->store, "alive");
    struct dirent *entry;
    int looked_at = 0;
    int stale = 0;

    if (dir == NULL && errno != ENOENT) {
        hf__tell_unknown(audit->teller, topic, strerror(errno));
        return;
    }
    while (dir != NULL && looked_at < LOOKED_AT_MAX && (entry = readdir(dir)) != NULL) {
        char name[300];
        int fd;

        if (entry->d_type != DT_FIFO || entry->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof name, "alive/%s", entry->d_name);
        fd = hf__life_open(audit->store, name);
        stale += fd == -1;
        looked_at++;
        if (fd >= 0)
            (void)close(fd);
    }
    if (dir != NULL)
        (void)closedir(dir);
    hf__tell(audit->teller, topic, "%d", stale);
}

/* Damage shows when the files are opened. */
static void tell_damage(const struct audit *audit, int64_t deadline_ns)
{
    static const struct hf__topic topic = {"file.damaged", NULL, "slot file and floor"};
    struct hf_error err = {.code = HF_OK, .text = ""};
    enum hf_status status = HF_OK;

    if (audit->store->dir_fd >= 0 && audit->refused.code == HF_OK)
        status = hf__slots_open(audit->store, deadline_ns, &err);
    if (status == HF_OK || status == HF_CORRUPT)
        hf__tell(audit->teller, topic, "%s", status == HF_CORRUPT ? err.text : "");
    else
        hf__tell_unknown(audit->teller, topic, err.text);
}

/* The directory, or what is there of the way to it. -1 with errno. */
static int open_place(const struct file_store *store)
{
    char *path = strdup(store->path);
    int fd = -1;
    int error = ENOMEM;

    while (path != NULL && fd < 0) {
        char *slash;

        fd = open(path[0] != '\0' ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = errno;
        slash = strrchr(path, '/');
        if (error != ENOENT || path[0] == '\0' || slash == NULL)
            break;
        *slash = '\0';
    }
    free(path);
    errno = error;
    return fd;
}

static void tell_all(struct audit *audit, const struct hf_audit_query *query)
{
    struct file_store *store = audit->store;
    const char *there = store->dir_fd >= 0 ? "yes" : "no";
    char boot_id[37];

    if (store->sys->boot_id(boot_id))
        hf__tell(audit->teller, (struct hf__topic){"store.incarnation", NULL, "boot id"}, "%s",
                 boot_id);
    hf__tell(audit->teller, (struct hf__topic){"file.exists", NULL, "open"}, "%s", there);
    tell_place(audit);
    tell_fs(audit);
    tell_rights(audit);
    tell_room(audit);
    tell_damage(audit, query->deadline_ns);
    if (query->scope == HF_AUDIT_ALL && store->dir_fd >= 0) {
        tell_floor(audit);
        tell_stale(audit);
    }
}

/* hf__dir_open says what is wrong with the directory, and leaves it open for us to look at. */
enum hf_status hf__file_audit(const struct hf_host *host, const char *url,
                              const struct hf_audit_query *query, hf_fact_fn *fn, void *data,
                              struct hf_error *err)
{
    struct hf__teller teller = {.fn = fn, .data = data};
    struct audit audit = {.store = hf__file_new(&hf__file_sys_real, host), .teller = &teller};
    enum hf_status status;

    if (audit.store == NULL)
        return hf__nomem(err);
    audit.store->readonly = true;
    audit.store->base.ops = &hf__file_ops;
    audit.place_fd = -1;
    status = hf__url_dir(url, &audit.store->path, &audit.store->shared, err);
    if (status == HF_OK) {
        (void)hf__dir_open(audit.store, &audit.refused);
        audit.place_fd = open_place(audit.store);
        if (audit.place_fd < 0)
            status = hf__fail_lock(err, errno == EACCES ? HF_DENIED : HF_UNREACHABLE, NULL,
                                   audit.store->shown, ": cannot open the directory: %s",
                                   strerror(errno));
    }
    if (status == HF_OK)
        tell_all(&audit, query);
    if (audit.place_fd >= 0)
        (void)close(audit.place_fd);
    hf__map_close(audit.store, false);
    hf__file_free(audit.store);
    return status == HF_OK ? hf__ok(err) : status;
}
