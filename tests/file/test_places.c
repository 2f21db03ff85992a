/* test_places.c - where a store cannot be, or not safely: a full disk, a read-only one, directories
 * that others can write, links; and where two users share one.
 *
 * What needs root is skipped without it. Mounts are made in a namespace of their own, so nothing is
 * left behind. Network file systems cannot be mounted here: their refusal is not tested. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define USER_1  60001
#define USER_2  60002
#define GROUP   60100

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            kit_die("line %d: %s", __LINE__, #condition);                                          \
    } while (0)

static void expect(enum hf_status got, enum hf_status want, const struct hf_error *err, int line)
{
    if (got != want)
        kit_die("line %d: %s instead of %s: %s", line, hf_status_name(got), hf_status_name(want),
                err->text);
}

/* Runs fn in a child; skips the test if that says so. */
static void in_child(void (*fn)(void *), const char *dir)
{
    int status = kit_wait(kit_spawn(fn, (void *)(uintptr_t)dir));

    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("# skipped: not root, or mounts are not allowed here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void mount_tmpfs(const char *dir, const char *options)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, options) != 0)
        _exit(SKIPPED);
}

static enum hf_status try_open(const char *dir, const char *parameter, struct hf_store **out,
                               struct hf_error *err)
{
    char url[800];

    (void)snprintf(url, sizeof url, "file:%s%s", dir, parameter);
    return hf_open(url, out, err);
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

static void become(uid_t uid, gid_t group)
{
    if (geteuid() != 0)
        _exit(SKIPPED);
    CHECK(setgroups(1, &group) == 0 && setgid(group) == 0 && setuid(uid) == 0);
}

static void open_as_user(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};
    char sub[600];

    become(USER_1, USER_1);
    expect(try_open(data, "", &store, &err), HF_DENIED, &err, __LINE__); /* root's */
    (void)snprintf(sub, sizeof sub, "%s/new", (const char *)data);
    expect(try_open(sub, "", &store, &err), HF_DENIED, &err, __LINE__); /* in root's */
}

static void of_another_user(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store;
    struct hf_error err = {0};

    (void)state;
    assert_int_equal(chmod(dir, 0755), 0);
    in_child(open_as_user, dir);
    assert_int_equal(chown(dir, USER_1, USER_1), 0);
    kit_expect(try_open(dir, "", &store, &err), HF_DENIED, &err); /* root in the user's */
    assert_non_null(strstr(err.text, "60001"));
}

static void open_unwritable(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};

    become(USER_1, USER_1);
    expect(try_open(data, "", &store, &err), HF_DENIED, &err, __LINE__);
    CHECK(chmod(data, 0700) == 0);
    expect(try_open(data, "", &store, &err), HF_OK, &err, __LINE__);
    hf_close(store);
}

static void unwritable(void **state)
{
    const char *dir = kit_dir();

    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chown(dir, USER_1, USER_1), 0);
    assert_int_equal(chmod(dir, 0500), 0);
    in_child(open_unwritable, dir);
}

static void writable_by_others(void **state)
{
    static const struct {
        mode_t mode;
        const char *parameter;
        enum hf_status status;
    } cases[] = {
        {0700, "", HF_OK},
        {0755, "", HF_OK},
        {0770, "", HF_DENIED},
        {0707, "", HF_DENIED},
        {0777, "", HF_DENIED},
        {02770, "?shared=group", HF_OK},
        {0777, "?shared=group", HF_DENIED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *dir = kit_dir();
        struct hf_store *store = NULL;
        struct hf_error err = {0};

        assert_int_equal(chmod(dir, cases[i].mode), 0);
        kit_expect(try_open(dir, cases[i].parameter, &store, &err), cases[i].status, &err);
        if (cases[i].status == HF_DENIED)
            assert_non_null(strstr(err.text, "chmod"));
        hf_close(store);
    }
}

struct member {
    const char *dir;
    uid_t uid;
};

static void use_as_member(void *data)
{
    struct member *member = data;
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = 30000, .wait_ms = 20000};
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err = {0};
    char name[40];

    become(member->uid, GROUP);
    (void)umask(077); /* as strict as it gets: the store must still be the group's */
    expect(try_open(member->dir, "?shared=group", &store, &err), HF_OK, &err, __LINE__);
    for (int i = 0; i < 200; i++) {
        expect(hf_acquire(store, "shared", &options, &lease, &err), HF_OK, &err, __LINE__);
        expect(hf_release(lease, &err), HF_OK, &err, __LINE__);
        if (i % 20 != 0)
            continue;
        (void)snprintf(name, sizeof name, "own/%d/%d", (int)member->uid, i);
        expect(hf_acquire(store, name, &options, &lease, &err), HF_OK, &err, __LINE__);
        expect(hf_release(lease, &err), HF_OK, &err, __LINE__);
    }
    hf_close(store);
}

/* The floor that one of them wrote is raised by the other. */
static void raise_as_member(void *data)
{
    struct member *member = data;
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char url[600];

    become(member->uid, GROUP);
    (void)umask(077);
    kit_world = (struct kit_world){
        .wall_fake = true, .wall_us = hf__wall_us() + (member->uid - USER_1 + 1) * 5 * HOUR_US};
    (void)snprintf(url, sizeof url, "file:%s?shared=group", member->dir);
    expect(hf__file_open_on(&kit_sys, &kit_host, url, hf__now_ns() + 5 * HF__NS_PER_S, &base, &err),
           HF_OK, &err, __LINE__);
    expect(kit_take(base, "shared", 1000, 5000, &hold, &err), HF_OK, &err, __LINE__);
    CHECK(hold.token >= (uint64_t)kit_world.wall_us);
    expect(kit_drop(base, &hold, &err), HF_OK, &err, __LINE__);
    kit_close(base);
}

static void shared_by_a_group(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("# skipped: not root\n");
        skip();
    }
    for (long round = 0; round < kit_rounds(30); round++) { /* who is first is made anew */
        const char *dir = kit_dir();
        struct member members[2] = {{dir, USER_1}, {dir, USER_2}};
        pid_t pids[2];

        assert_int_equal(chown(dir, 0, GROUP), 0);
        assert_int_equal(chmod(dir, 02770), 0);
        for (int i = 0; i < 2; i++)
            pids[i] = kit_spawn(use_as_member, &members[i]);
        for (int i = 0; i < 2; i++)
            assert_int_equal(kit_wait(pids[i]), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(kit_wait(kit_spawn(raise_as_member, &members[i])), 0);
    }
}

/* A link in place of a file is not followed. */
static void links(void **state)
{
    static const char *const names[] = {"floor", "lock", "floor.new"};
    const char *elsewhere = kit_dir();
    char target[600];
    char path[600];
    char boot_id[37];
    struct hf_store *store = NULL;
    struct hf_error err = {0};
    struct stat st;

    (void)state;
    assert_true(hf__file_sys_real.boot_id(boot_id));
    (void)snprintf(target, sizeof target, "%s/precious", elsewhere);
    for (size_t i = 0; i < 4; i++) {
        const char *dir = kit_dir();
        int fd = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_int_equal(write(fd, "data", 4), 4);
        (void)close(fd);
        if (i < 3)
            (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        else
            (void)snprintf(path, sizeof path, "%s/slots-%s", dir, boot_id);
        assert_int_equal(symlink(target, path), 0);
        if (try_open(dir, "", &store, &err) == HF_OK)
            fail_msg("%s is followed", path);
        kit_expect(err.code, HF_DENIED, &err);
        assert_int_equal(stat(target, &st), 0);
        assert_int_equal(st.st_size, 4);
    }
}

/* Neither is a file of another kind or owner believed. */
static void strange_files(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store = NULL;
    struct hf_error err = {0};
    char path[600];
    char url[600];

    (void)state;
    kit_expect(try_open(dir, "", &store, &err), HF_OK, &err);
    hf_close(store);
    (void)snprintf(path, sizeof path, "%s", kit_slots(dir));
    assert_int_equal(chmod(path, 0666), 0);
    kit_expect(try_open(dir, "", &store, &err), HF_DENIED, &err);
    assert_int_equal(chmod(path, 0600), 0);
    kit_expect(try_open(dir, "", &store, &err), HF_OK, &err);
    hf_close(store);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(try_open(dir, "", &store, &err) != HF_OK);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    kit_expect(try_open(dir, "", &store, &err), HF_DENIED, &err);
    (void)snprintf(url, sizeof url, "file:%s", dir);
    (void)snprintf(path, sizeof path, "%s/slots-of-another-boot", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof path, "%s/floor", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(try_open(dir, "", &store, &err) != HF_OK); /* neither does it wait for a writer */
    (void)!hf_repair(url, 0, &err);
}

/* Takes, waits in vain, raises the floor and gives back: everything that makes a file. */
static void use_all_of_it(const char *dir)
{
    struct hf_store_base *base = NULL;
    struct kit_hold hold;
    struct kit_hold other;
    struct hf_error err = {0};

    expect(kit_try_open(dir, &base, &err), HF_OK, &err, __LINE__);
    expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err, __LINE__);
    expect(kit_take(base, "job", 60000, 20, &other, &err), HF_BUSY, &err, __LINE__);
    kit_world.wall_us += 2 * HOUR_US;
    expect(kit_drop(base, &hold, &err), HF_OK, &err, __LINE__);
    expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err, __LINE__);
    expect(kit_drop(base, &hold, &err), HF_OK, &err, __LINE__);
    kit_close(base);
}

/* A daemon with a umask that takes its own rights away must not leave a store that nobody can use.
 */
static void use_with_umasks(void *data)
{
    static const mode_t umasks[] = {0177, 0277, 0477, 0777, 0};
    char sub[600];

    become(USER_1, USER_1);
    kit_world = (struct kit_world){.wall_fake = true, .wall_us = hf__wall_us()};
    for (size_t i = 0; i < sizeof umasks / sizeof *umasks; i++) {
        (void)snprintf(sub, sizeof sub, "%s/%zu/below", (const char *)data, i);
        (void)umask(umasks[i]);
        use_all_of_it(sub);
        (void)umask(022);
        use_all_of_it(sub);
    }
}

static void odd_umasks(void **state)
{
    static const char *const paths[] = {"plain", "slashes//", "dot/."};
    const char *dir = kit_dir();
    struct hf_store *store;
    struct hf_error err;
    struct stat st;
    char sub[600];

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) { /* the group's rights too */
        mode_t old = umask(077);

        (void)snprintf(sub, sizeof sub, "%s/%s", dir, paths[i]);
        kit_expect(try_open(sub, "?shared=group", &store, &err), HF_OK, &err);
        hf_close(store);
        (void)umask(old);
        assert_int_equal(stat(sub, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02770);
    }
    assert_int_equal(chmod(dir, 0777), 0);
    in_child(use_with_umasks, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_disk),         cmocka_unit_test(no_room_at_all),
        cmocka_unit_test(read_only),         cmocka_unit_test(of_another_user),
        cmocka_unit_test(unwritable),        cmocka_unit_test(writable_by_others),
        cmocka_unit_test(shared_by_a_group), cmocka_unit_test(links),
        cmocka_unit_test(odd_umasks),        cmocka_unit_test(strange_files),
    };

    return KIT_RUN(tests);
}
