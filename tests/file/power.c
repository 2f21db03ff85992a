/* power.c - the system under the store that notes what a disk would have to keep. */
#include "power.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct power power;
static struct disk disk;

void note_step(void)
{
    assert_true(power.step_count < STEPS_MAX);
    power.steps[power.step_count++] = (struct step){disk, power.given};
}

static struct folder *current(void)
{
    return disk.pending_count > 0 ? &disk.pending[disk.pending_count - 1] : &disk.durable;
}

static void change(struct folder next)
{
    assert_true(disk.pending_count < PENDING_MAX);
    disk.pending[disk.pending_count++] = next;
}

static struct inode *inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    for (int i = disk.count - 1; i >= 0; i--)
        if (disk.inodes[i].number == st.st_ino)
            return &disk.inodes[i];
    return NULL;
}

static int sim_openat(int dir, const char *name, int flags, mode_t mode)
{
    int fd = openat(dir, name, flags, mode);
    struct stat st;

    if (fd < 0 || strcmp(name, "floor.new") != 0)
        return fd;
    if (current()->fresh < 0) {
        struct folder next = *current();

        assert_true(disk.count < INODES_MAX);
        assert_int_equal(fstat(fd, &st), 0);
        disk.inodes[disk.count] = (struct inode){.number = st.st_ino, .dirty = true};
        next.fresh = disk.count++;
        change(next);
    } else if ((flags & O_TRUNC) != 0) {
        disk.inodes[current()->fresh].now.len = 0;
        disk.inodes[current()->fresh].dirty = true;
    }
    note_step();
    return fd;
}

static ssize_t sim_pwrite(int fd, const void *buf, size_t len, off_t at)
{
    ssize_t done = pwrite(fd, buf, len, at);
    struct inode *inode = inode_of(fd);

    if (inode != NULL && done > 0) {
        assert_true(at == 0 && len <= TEXT_MAX);
        memcpy(inode->now.text, buf, len);
        inode->now.len = len;
        inode->dirty = true;
        note_step();
    }
    return done;
}

static int sim_fsync(int fd)
{
    struct inode *inode = inode_of(fd);
    struct stat st;

    if (inode != NULL && !power.drop_file_fsync) {
        inode->synced = inode->now;
        inode->ever_synced = true;
        inode->dirty = false;
    }
    assert_int_equal(fstat(fd, &st), 0);
    if (S_ISDIR(st.st_mode) && power.fail_dir_fsync > 0 && --power.fail_dir_fsync == 0) {
        note_step();
        errno = EIO;
        return -1;
    }
    if (S_ISDIR(st.st_mode) && !power.drop_dir_fsync) {
        disk.durable = *current();
        disk.pending_count = 0;
    }
    note_step();
    return 0;
}

static int sim_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int result = renameat(from_dir, from, to_dir, to);

    if (result == 0 && strcmp(from, "floor.new") == 0) {
        struct folder next = *current();

        if (next.floor >= 0)
            disk.inodes[next.floor].number = 0; /* free, and may be another file's soon */
        next.floor = next.fresh;
        next.fresh = -1;
        change(next);
        note_step();
    }
    return result;
}

static bool sim_boot_id(char out[37])
{
    return kit_sys.boot_id(out);
}

static const struct hf__file_sys sim = {.pread = pread,
                                        .pwrite = sim_pwrite,
                                        .openat = sim_openat,
                                        .fsync = sim_fsync,
                                        .renameat = sim_renameat,
                                        .boot_id = sim_boot_id,
                                        .time_namespace = NULL};

struct hf__file_sys noting_sys(void)
{
    struct hf__file_sys sys = sim;

    sys.time_namespace = kit_sys.time_namespace;
    return sys;
}

struct hf_store_base *open_simulated(const struct hf__file_sys *sys, const char *dir)
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(
        hf__file_open_on(sys, &kit_host, url, kit_host.now_ns() + 5 * HF__NS_PER_S, &base, &err),
        HF_OK, &err);
    return base;
}

void begin(void)
{
    memset(&disk, 0, sizeof disk);
    disk.durable = (struct folder){-1, -1};
    power.step_count = 0;
    power.given = 0;
    power.drop_file_fsync = power.drop_dir_fsync = false;
    power.fail_dir_fsync = 0;
    kit_world = (struct kit_world){
        .wall_fake = true, .wall_us = 1, .boot_id = "00000000-0000-4000-8000-000000000001"};
}
