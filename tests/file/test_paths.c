/* test_paths.c - paths of all kinds in a URL: long ones, and those that lead nowhere. */
#include "../support/faultkit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum hf_status try_open(const char *dir, const char *parameter, struct hf_store **out,
                               struct hf_error *err)
{
    char url[800];

    (void)snprintf(url, sizeof url, "file:%s%s", dir, parameter);
    return hf_open(url, out, err);
}

/* What another process is told about a store must be all of its name. */
static void long_path(void **state)
{
    static const size_t lengths[] = {1018, 1019, 1500}; /* a URL of 1023 bytes, and longer ones */
    struct hf_store *store;
    struct hf_store *again;
    struct hf_error err;
    char path[1501];

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t used = (size_t)snprintf(path, sizeof path, "%s", kit_dir());

        for (; used < lengths[i]; used++)
            path[used] = used % 100 == 0 && used + 1 < lengths[i] ? '/' : 'd';
        path[used] = '\0';
        assert_int_equal(setenv("HOLDFAST_DIR", path, 1), 0);
        if (lengths[i] + 5 >= 1024) {
            kit_expect(hf_open(NULL, &store, &err), HF_INVALID, &err);
            assert_non_null(strstr(err.text, "too long"));
            continue;
        }
        kit_expect(hf_open(NULL, &store, &err), HF_OK, &err);
        assert_string_equal(hf_store_url(store) + strlen("file:"), path);
        kit_expect(hf_open(hf_store_url(store), &again, &err), HF_OK, &err);
        hf_close(again);
        hf_close(store);
    }
    assert_int_equal(unsetenv("HOLDFAST_DIR"), 0);
}

static void lose_one(const char *dir, const char *name)
{
    struct hf_acquire_options options = {.size = sizeof options, .ttl_ms = 100, .no_keeper = true};
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err;

    kit_expect(try_open(dir, "", &store, &err), HF_OK, &err);
    kit_expect(hf_acquire(store, name, &options, &lease, &err), HF_OK, &err);
    kit_sleep_ms(110);
    kit_expect(hf_release(lease, &err), HF_LOST, &err);
    assert_non_null(strstr(err.text, "expired"));
    hf_close(store);
}

/* A text has 256 bytes, and a path may have more: what is wrong, and what to do, must
 * not be lost. */
static void reasons_survive_long_paths(void **state)
{
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char name[HF_NAME_MAX + 1] = "";
    char path[700];
    char floor[710];
    size_t used = (size_t)snprintf(path, sizeof path, "%s", kit_dir());

    (void)state;
    for (; used < 400; used++)
        path[used] = used % 100 == 0 ? '/' : 'd';
    (void)snprintf(path + used, sizeof path - used, "/the-end");
    (void)snprintf(floor, sizeof floor, "%s/floor", path);
    memset(name, 'n', HF_NAME_MAX);
    base = kit_open(path);
    kit_expect(kit_take(base, name, 60000, 0, &hold, &err), HF_OK, &err);
    kit_expect(kit_take(base, name, 60000, 0, &hold, &err), HF_BUSY, &err);
    assert_non_null(strstr(err.text, "/the-end has been held by host/1/test"));
    kit_close(base);
    lose_one(path, name);
    assert_int_equal(truncate(floor, 1), 0);
    kit_expect(kit_try_open(path, &base, &err), HF_CORRUPT, &err);
    assert_non_null(strstr(err.text, "/the-end' repair --above TOKEN (the highest token your "
                                     "resources have admitted)"));
    assert_int_equal(unlink(floor), 0);
    assert_int_equal(mkdir(floor, 0700), 0);
    (void)strcat(path, "/floor/x");
    assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
    assert_true(kit_try_open(path, &base, &err) != HF_OK);
    assert_non_null(strstr(err.text, "/floor/x: cannot open the directory: Not a directory"));
}

/* A mistake in the URL does not pass by itself, and nobody waits for it to. */
static void a_slip_is_named(void **state)
{
    static const struct {
        const char *below;
        const char *says;
    } rows[] = {
        {"?shard=group", "the option \"shard\" is unknown; did you mean shared?"},
        {"?ttl=3s", "the option \"ttl\" is unknown; known are shared"},
        {"?shared=all", "the option shared has a wrong value"},
        {"?shared=group&colour=red", "the option \"colour\" is unknown"},
        {"/file", "Not a directory"},
        {"/file/below", "Not a directory"},
        {"/link", "Not a directory"},
    };
    const char *dir = kit_dir();
    struct hf_error err = {0};
    struct hf_store *store;
    char path[600];
    int fd;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/file", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "%s/link", dir);
    assert_int_equal(symlink("file", path), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(path, sizeof path, "file:%s%s", dir, rows[i].below);
        kit_expect(hf_open(path, &store, &err), HF_INVALID, &err);
        if (strstr(err.text, rows[i].says) == NULL)
            fail_msg("%s: %s", path, err.text);
        kit_expect(hf_open_readonly(path, &store, &err), HF_INVALID, &err);
    }
}

static void a_name_that_is_too_long(void **state)
{
    char url[800] = "file:";
    struct hf_error err = {0};
    struct hf_store *store;

    (void)state;
    (void)snprintf(url + 5, sizeof url - 5, "%s/%0300d", kit_dir(), 7);
    kit_expect(hf_open(url, &store, &err), HF_INVALID, &err);
    assert_non_null(strstr(err.text, "File name too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_path),
        cmocka_unit_test(reasons_survive_long_paths),
        cmocka_unit_test(a_slip_is_named),
        cmocka_unit_test(a_name_that_is_too_long),
    };

    return KIT_RUN(tests);
}
