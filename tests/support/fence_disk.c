/* fence_disk.c - a disk that loses power. */
#include "fence_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct disk *of(const struct hf__fence_io *io)
{
    return (struct disk *)(uintptr_t)io;
}

uint64_t disk_random(struct disk *disk)
{
    disk->random = disk->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return disk->random >> 33;
}

/* Counts the calls that change something or make it last. */
static bool alive(struct disk *disk)
{
    if (disk->powered && ++disk->calls == disk->cut_at)
        disk->powered = false;
    return disk->powered;
}

static struct disk_name *find(struct disk_name *names, const char *name)
{
    for (int i = 0; i < DISK_NAMES; i++)
        if (names[i].inode != 0 && strcmp(names[i].name, name) == 0)
            return &names[i];
    return NULL;
}

static void add_name(struct disk_name *names, const char *name, int inode)
{
    for (int i = 0; i < DISK_NAMES; i++)
        if (names[i].inode == 0) {
            names[i].inode = inode;
            strcpy(names[i].name, name);
            return;
        }
    assert(!"too many names");
}

static void directory_changed(struct disk *disk)
{
    assert(disk->changes < DISK_CHANGES);
    disk->changes++;
    memcpy(disk->durable_names[disk->changes], disk->names, sizeof disk->names);
}

static int new_inode(struct disk *disk)
{
    for (int i = 1; i < DISK_INODES; i++)
        if (!disk->files[i].used) {
            memset(&disk->files[i], 0, sizeof disk->files[i]);
            disk->files[i].used = true;
            return i;
        }
    assert(!"too many inodes");
    return 0;
}

static int new_fd(struct disk *disk, int inode)
{
    for (int i = 0; i < DISK_FDS; i++)
        if (disk->fds[i] == 0) {
            disk->fds[i] = inode + 1;
            return i;
        }
    return -EMFILE;
}

static struct disk_file *file_of(struct disk *disk, int fd)
{
    assert(fd >= 0 && fd < DISK_FDS && disk->fds[fd] > 0);
    return &disk->files[disk->fds[fd] - 1];
}

static int disk_open_dir(const struct hf__fence_io *io, const char *path)
{
    (void)path;
    return of(io)->powered ? new_fd(of(io), 0) : -EIO;
}

static int disk_open(const struct hf__fence_io *io, int dir, const char *name, int flags,
                     mode_t mode)
{
    struct disk *disk = of(io);
    struct disk_name *entry = find(disk->names, name);
    int inode;

    (void)dir;
    (void)mode;
    if (!disk->powered)
        return -EIO;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return disk->no_tmpfile ? -EOPNOTSUPP : new_fd(disk, new_inode(disk));
    if (entry != NULL)
        return (flags & O_EXCL) ? -EEXIST : new_fd(disk, entry->inode);
    if (!(flags & O_CREAT))
        return -ENOENT;
    if (!alive(disk))
        return -EIO;
    inode = new_inode(disk);
    add_name(disk->names, name, inode);
    directory_changed(disk);
    return new_fd(disk, inode);
}

static int disk_close(const struct hf__fence_io *io, int fd)
{
    (void)file_of(of(io), fd);
    of(io)->fds[fd] = 0;
    return 0;
}

static void fill_stat(struct disk *disk, int inode, struct stat *out)
{
    memset(out, 0, sizeof *out);
    out->st_ino = (ino_t)inode + 1;
    out->st_mode = inode == 0 ? S_IFDIR | 0755 : S_IFREG | 0644;
    out->st_nlink = 1;
    out->st_uid = geteuid();
    out->st_size = (off_t)disk->files[inode].size;
}

static int disk_stat(const struct hf__fence_io *io, int dir, const char *name, struct stat *out)
{
    struct disk_name *entry = find(of(io)->names, name);

    (void)dir;
    if (!of(io)->powered)
        return -EIO;
    if (entry == NULL)
        return -ENOENT;
    fill_stat(of(io), entry->inode, out);
    return 0;
}

static int disk_stat_fd(const struct hf__fence_io *io, int fd, struct stat *out)
{
    (void)file_of(of(io), fd);
    if (!of(io)->powered)
        return -EIO;
    fill_stat(of(io), of(io)->fds[fd] - 1, out);
    return 0;
}

static ssize_t disk_read_link(const struct hf__fence_io *io, int dir, const char *name, char *out,
                              size_t size)
{
    (void)io, (void)dir, (void)name, (void)out, (void)size;
    return -EINVAL;
}

static ssize_t disk_pread(const struct hf__fence_io *io, int fd, void *buf, size_t len, off_t at)
{
    struct disk_file *file = file_of(of(io), fd);

    if (!of(io)->powered)
        return -EIO;
    if ((size_t)at >= file->size)
        return 0;
    if (len > file->size - (size_t)at)
        len = file->size - (size_t)at;
    memcpy(buf, file->data + at, len);
    return (ssize_t)len;
}

static ssize_t disk_pwrite(const struct hf__fence_io *io, int fd, const void *buf, size_t len,
                           off_t at)
{
    struct disk_file *file = file_of(of(io), fd);
    bool powered = alive(of(io));

    assert((size_t)at + len <= DISK_FILE_MAX);
    if (!powered)
        len = disk_random(of(io)) % (len + 1); /* the call under way got some of it done */
    memcpy(file->data + at, buf, len);
    if (len > 0 && (size_t)at + len > file->size)
        file->size = (size_t)at + len;
    return powered ? (ssize_t)len : -EIO;
}

static int disk_truncate(const struct hf__fence_io *io, int fd, off_t size)
{
    struct disk_file *file = file_of(of(io), fd);

    if (!alive(of(io)))
        return -EIO;
    if ((size_t)size < file->size)
        memset(file->data + size, 0, file->size - (size_t)size);
    file->size = (size_t)size;
    return 0;
}

static int disk_set_attributes(const struct hf__fence_io *io, int fd, const struct stat *like)
{
    (void)fd, (void)like;
    return of(io)->powered ? 0 : -EIO;
}

static int disk_sync(const struct hf__fence_io *io, int fd, bool data_only)
{
    struct disk *disk = of(io);
    struct disk_file *file = file_of(disk, fd);

    (void)data_only;
    if (!alive(disk))
        return -EIO;
    if (file == &disk->files[0]) {
        memcpy(disk->durable_names[0], disk->names, sizeof disk->names);
        disk->changes = 0;
        return 0;
    }
    memcpy(file->durable, file->data, sizeof file->data);
    file->durable_size = file->size;
    return 0;
}

static int disk_link(const struct hf__fence_io *io, int dir, int fd, const char *from,
                     const char *to)
{
    struct disk *disk = of(io);

    (void)dir, (void)from;
    if (!disk->powered)
        return -EIO;
    if (find(disk->names, to) != NULL)
        return -EEXIST;
    if (!alive(disk))
        return -EIO;
    add_name(disk->names, to, disk->fds[fd] - 1);
    directory_changed(disk);
    return 0;
}

static int disk_rename(const struct hf__fence_io *io, int dir, const char *from, const char *to)
{
    struct disk *disk = of(io);
    struct disk_name *entry = find(disk->names, from);
    struct disk_name *target = find(disk->names, to);
    int inode;

    (void)dir;
    if (!alive(disk))
        return -EIO;
    if (entry == NULL)
        return -ENOENT;
    inode = entry->inode;
    entry->inode = 0;
    if (target != NULL)
        target->inode = inode;
    else
        add_name(disk->names, to, inode);
    directory_changed(disk);
    return 0;
}

static int disk_unlink(const struct hf__fence_io *io, int dir, const char *name)
{
    struct disk *disk = of(io);
    struct disk_name *entry = find(disk->names, name);

    (void)dir;
    if (!alive(disk))
        return -EIO;
    if (entry == NULL)
        return -ENOENT;
    entry->inode = 0;
    directory_changed(disk);
    return 0;
}

static int disk_try_lock(const struct hf__fence_io *io, int fd)
{
    (void)file_of(of(io), fd);
    return of(io)->powered ? 0 : -EIO;
}

static void disk_sleep_ns(const struct hf__fence_io *io, int64_t ns)
{
    (void)io, (void)ns;
}

void disk_init(struct disk *disk, uint64_t seed)
{
    memset(disk, 0, sizeof *disk);
    disk->io = (struct hf__fence_io){.open_dir = disk_open_dir,
                                     .open = disk_open,
                                     .close = disk_close,
                                     .stat = disk_stat,
                                     .stat_fd = disk_stat_fd,
                                     .read_link = disk_read_link,
                                     .pread = disk_pread,
                                     .pwrite = disk_pwrite,
                                     .truncate = disk_truncate,
                                     .set_attributes = disk_set_attributes,
                                     .sync = disk_sync,
                                     .link = disk_link,
                                     .rename = disk_rename,
                                     .unlink = disk_unlink,
                                     .try_lock = disk_try_lock,
                                     .sleep_ns = disk_sleep_ns};
    disk->files[0].used = true;
    disk->random = seed;
    disk->powered = true;
}

/* Each sector is the old or the new one; the size is the old or the new one. */
static void settle(struct disk *disk, struct disk_file *file)
{
    if (disk_random(disk) % 2 == 0)
        file->durable_size = file->size;
    for (size_t at = 0; at < DISK_FILE_MAX; at += DISK_SECTOR)
        if (disk_random(disk) % 2 == 0)
            memcpy(file->durable + at, file->data + at, DISK_SECTOR);
    memset(file->durable + file->durable_size, 0, DISK_FILE_MAX - file->durable_size);
    memcpy(file->data, file->durable, sizeof file->data);
    file->size = file->durable_size;
}

void disk_reboot(struct disk *disk)
{
    int kept = (int)(disk_random(disk) % (uint64_t)(disk->changes + 1));

    memcpy(disk->names, disk->durable_names[kept], sizeof disk->names);
    memcpy(disk->durable_names[0], disk->names, sizeof disk->names);
    disk->changes = 0;
    memset(disk->fds, 0, sizeof disk->fds);
    for (int i = 1; i < DISK_INODES; i++) {
        bool named = false;

        for (int n = 0; n < DISK_NAMES; n++)
            named = named || disk->names[n].inode == i;
        if (named)
            settle(disk, &disk->files[i]);
        else
            disk->files[i].used = false;
    }
    disk->powered = true;
    disk->cut_at = 0;
    disk->calls = 0;
}

const unsigned char *disk_read(struct disk *disk, const char *name, size_t *size)
{
    struct disk_name *entry = find(disk->names, name);

    *size = 0;
    if (entry == NULL)
        return NULL;
    *size = disk->files[entry->inode].size;
    return disk->files[entry->inode].data;
}
