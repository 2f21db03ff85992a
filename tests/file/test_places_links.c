/* test_places_links.c - links, and files of another kind, where the store's own should be. */
#include "places.h"

#include <holdfast/repair.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links),
        cmocka_unit_test(strange_files),
    };

    return KIT_RUN(tests);
}
