/* test_places_full.c - a disk that is full to the last block, on every file system that the words
 * of locks are mapped on: what is there can be changed, and nobody is ended by a signal.
 *
 * The file systems are made in files and mounted in a namespace of their own. */
#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLDS = 300, ROUNDS = 4 };

struct disk {
    const char *name;
    const char *make;    /* a program, and what it is told before the file; NULL: tmpfs */
    const char *options; /* of tmpfs */
    int mib;
    bool mapped; /* what its maker decides */
};

struct scene {
    const struct disk *disk;
    char dir[300];
    char image[300];
};

static void mount_disk(const struct scene *scene)
{
    char command[2000];

    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        _exit(SKIPPED);
    if (scene->disk->make == NULL) {
        if (mount("tmpfs", scene->dir, "tmpfs", 0, scene->disk->options) != 0)
            _exit(SKIPPED);
        return;
    }
    (void)snprintf(command, sizeof command,
                   "{ truncate -s %dM %s && %s %s && mount -o loop %s %s; } >/dev/null 2>&1",
                   scene->disk->mib, scene->image, scene->disk->make, scene->image, scene->image,
                   scene->dir);
    if (system(command) != 0) /* no such file system here, or no loop devices */
        _exit(SKIPPED);
}

/* Until not one byte more can be written. */
static void fill(const char *dir)
{
    static const char zeros[1 << 20];
    char path[400];
    int fd;

    (void)snprintf(path, sizeof path, "%s/filler", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    for (size_t len = sizeof zeros; len > 0; len /= 2)
        while (write(fd, zeros, len) > 0)
            continue;
    CHECK(errno == ENOSPC);
    (void)fsync(fd);
    (void)close(fd);
}

static void use_full_disk(void *data)
{
    const struct scene *scene = data;
    static struct kit_hold holds[HOLDS];
    struct hf_store_base *base = NULL;
    struct kit_hold hold;
    struct hf_error err = {0};
    char store[400], url[420], name[32];
    int dir_fd;

    mount_disk(scene);
    (void)snprintf(store, sizeof store, "%s/store", scene->dir);
    (void)snprintf(url, sizeof url, "file:%s", store);
    expect(hf__file_open_on(&kit_mapped_sys, &kit_host, url, HF_NEVER, &base, &err), HF_OK, &err,
           __LINE__);
    CHECK(hf__file_of(base)->mapped == scene->disk->mapped);
    for (int i = 0; i < HOLDS; i++) {
        (void)snprintf(name, sizeof name, "lock-%d", i);
        expect(kit_take_on(base, name,
                           &(struct kit_terms){.ttl_ms = 600000, .detached = i % 2 == 0}, &holds[i],
                           &err),
               HF_OK, &err, __LINE__);
    }
    dir_fd = open(scene->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir_fd >= 0 && syncfs(dir_fd) == 0);
    fill(scene->dir);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < HOLDS; i++) {
            expect(kit_renew(base, &holds[i], &err), HF_OK, &err, __LINE__);
            expect(kit_take(base, holds[i].name, 1000, 0, &hold, &err), HF_BUSY, &err, __LINE__);
            expect(kit_drop(base, &holds[i], &err), HF_OK, &err, __LINE__);
            (void)snprintf(name, sizeof name, "lock-%d", i);
            expect(kit_take(base, name, 600000, 0, &holds[i], &err), HF_OK, &err, __LINE__);
        }
        CHECK(syncfs(dir_fd) == 0);
    }
    kit_close(base);
}

static void full_disk(const struct disk *disk)
{
    struct scene scene = {.disk = disk};
    const char *dir = kit_dir();

    (void)snprintf(scene.dir, sizeof scene.dir, "%s/mount", dir);
    (void)snprintf(scene.image, sizeof scene.image, "%s/image", dir);
    assert_int_equal(mkdir(scene.dir, 0700), 0);
    print_message("# %s\n", disk->name);
    in_child(use_full_disk, (const char *)&scene);
}

static void tmpfs(void **state)
{
    (void)state;
    full_disk(&(struct disk){"tmpfs", NULL, "size=4m,mode=0700", 0, true});
}

static void ext2(void **state)
{
    (void)state;
    full_disk(&(struct disk){"ext2", "mkfs.ext2 -q -F", NULL, 8, true});
}

static void ext3(void **state)
{
    (void)state;
    full_disk(&(struct disk){"ext3", "mkfs.ext3 -q -F", NULL, 16, true});
}

static void ext4(void **state)
{
    (void)state;
    full_disk(&(struct disk){"ext4", "mkfs.ext4 -q -F", NULL, 16, true});
}

static void xfs(void **state)
{
    (void)state;
    full_disk(
        &(struct disk){"xfs without reflink", "mkfs.xfs -q -f -m reflink=0", NULL, 300, true});
}

/* Files that can share blocks need a new one for a change, and there may be none. */
static void xfs_with_reflink(void **state)
{
    (void)state;
    full_disk(&(struct disk){"xfs", "mkfs.xfs -q -f -m reflink=1", NULL, 300, false});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tmpfs), cmocka_unit_test(ext2), cmocka_unit_test(ext3),
        cmocka_unit_test(ext4),  cmocka_unit_test(xfs),  cmocka_unit_test(xfs_with_reflink),
    };

    return KIT_RUN(tests);
}
