/* test_places_disk.c - a store on a disk that is full or read-only.
 *
 * Mounts are made in a namespace of their own, so nothing is left behind. Network file systems
 * cannot be mounted here: their refusal is not tested. */
#include "places.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void mount_tmpfs(const char *dir, const char *options)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, options) != 0)
        _exit(SKIPPED);
}

/* Locks are taken until the disk is full. */
static void fill_disk(void *data)
{
    enum { HOLDS = 20000 };
    struct kit_hold *holds = calloc(HOLDS, sizeof *holds);
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    enum hf_status status = HF_OK;
    char name[40];
    int count = 0;

    mount_tmpfs(data, "size=1m,mode=0700");
    CHECK(holds != NULL);
    base = kit_open(data);
    while (count < HOLDS && status == HF_OK) {
        (void)snprintf(name, sizeof name, "full/%d", count);
        status = kit_take_detached(base, name, 60000, &holds[count], &err);
        count += status == HF_OK;
    }
    expect(status, HF_UNREACHABLE, &err, __LINE__);
    CHECK(count > 100 && strstr(err.text, "No space left") != NULL);
    for (int i = 0; i < count; i++) {
        expect(kit_renew(base, &holds[i], &err), HF_OK, &err, __LINE__);
        expect(kit_take(base, holds[i].name, 1000, 0, &hold, &err), HF_BUSY, &err, __LINE__);
    }
    for (int i = 0; i < count; i++)
        expect(kit_drop(base, &holds[i], &err), HF_OK, &err, __LINE__);
    /* There is room in the slots again. */
    expect(kit_take(base, name, 1000, 0, &hold, &err), HF_OK, &err, __LINE__);
    expect(kit_drop(base, &hold, &err), HF_OK, &err, __LINE__);
    kit_close(base);
}

static void full_disk(void **state)
{
    (void)state;
    in_child(fill_disk, kit_dir());
}

/* A disk so full that there is no room for a store. When there is room, all is well. */
static void open_on_full(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};
    char path[600];
    char block[4096] = {0};
    int fd;

    mount_tmpfs(data, "size=256k,mode=0700");
    for (int left = 0; left < 12; left++) {
        (void)snprintf(path, sizeof path, "%s/fill", (const char *)data);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int i = 0; i < 64 - left && write(fd, block, sizeof block) > 0; i++)
            continue;
        (void)close(fd);
        expect(try_open(data, "", &store, &err), HF_UNREACHABLE, &err, __LINE__);
        CHECK(strstr(err.text, "No space left") != NULL);
    }
    CHECK(unlink(path) == 0);
    expect(try_open(data, "", &store, &err), HF_OK, &err, __LINE__);
    hf_close(store);
}

static void no_room_at_all(void **state)
{
    (void)state;
    in_child(open_on_full, kit_dir());
}

static void open_read_only(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};

    mount_tmpfs(data, "size=1m,mode=0700");
    CHECK(mount(NULL, data, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    expect(try_open(data, "", &store, &err), HF_DENIED, &err, __LINE__); /* none there yet */
    CHECK(strstr(err.text, "Read-only") != NULL);
    CHECK(mount(NULL, data, NULL, MS_REMOUNT, NULL) == 0);
    expect(try_open(data, "", &store, &err), HF_OK, &err, __LINE__);
    hf_close(store);
    CHECK(mount(NULL, data, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    expect(try_open(data, "", &store, &err), HF_DENIED, &err, __LINE__); /* one that is there */
    CHECK(strstr(err.text, "Read-only") != NULL);
}

static void read_only(void **state)
{
    (void)state;
    in_child(open_read_only, kit_dir());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_disk),
        cmocka_unit_test(no_room_at_all),
        cmocka_unit_test(read_only),
    };

    return KIT_RUN(tests);
}
