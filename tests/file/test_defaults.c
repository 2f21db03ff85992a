/* test_defaults.c - where a store is if nobody says so, what is said where it cannot be, and what
 * root may see of a user's.
 *
 * What needs root is skipped without it. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define USER_1  60001
#define USER_2  60002

static void in_child(void (*fn)(void *), const char *dir)
{
    int status = kit_wait(kit_spawn(fn, (void *)(uintptr_t)dir));

    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("# skipped: not root\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void become(uid_t uid)
{
    gid_t group = (gid_t)uid;

    if (geteuid() != 0)
        _exit(SKIPPED);
    if (setgroups(1, &group) != 0 || setgid(group) != 0 || setuid(uid) != 0)
        kit_die("cannot become user %d", (int)uid);
}

static void forget_places(void)
{
    static const char *const names[] = {"HOLDFAST_DIR", "STATE_DIRECTORY", "XDG_STATE_HOME"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
}

static void expect_default(const char *dir, const char *below)
{
    struct hf_store *store;
    struct hf_error err = {0};
    char wanted[600];

    (void)snprintf(wanted, sizeof wanted, "file:%s%s", dir, below);
    kit_expect(hf_open(NULL, &store, &err), HF_OK, &err);
    assert_string_equal(hf_store_url(store), wanted);
    hf_close(store);
}

/* What systemd gives a service to keep its state in comes after our own variable, and before the
 * rules for people. */
static void a_service_has_its_own(void **state)
{
    const char *dir = kit_dir();
    const char *other = kit_dir();
    char two[600];

    (void)state;
    forget_places();
    assert_int_equal(setenv("XDG_STATE_HOME", other, 1), 0);
    assert_int_equal(setenv("STATE_DIRECTORY", dir, 1), 0);
    expect_default(dir, "/holdfast");
    (void)snprintf(two, sizeof two, "%s:%s", dir, other); /* StateDirectory=a b */
    assert_int_equal(setenv("STATE_DIRECTORY", two, 1), 0);
    expect_default(dir, "/holdfast");
    (void)snprintf(two, sizeof two, "%s/mine", other);
    assert_int_equal(setenv("HOLDFAST_DIR", two, 1), 0);
    expect_default(other, "/mine");
    forget_places();
}

static void use_xdg(void *data)
{
    static const char *const useless[] = {"", "relative", ":", ":/nowhere"};

    become(USER_1);
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        struct hf_store *store;
        struct hf_error err = {0};

        (void)setenv("STATE_DIRECTORY", useless[i], 1);
        (void)setenv("XDG_STATE_HOME", data, 1);
        if (hf_open(NULL, &store, &err) != HF_OK)
            kit_die("STATE_DIRECTORY=%s: %s", useless[i], err.text);
        if (strncmp(hf_store_url(store) + 5, data, strlen(data)) != 0)
            kit_die("STATE_DIRECTORY=%s: %s", useless[i], hf_store_url(store));
        hf_close(store);
    }
}

static void a_useless_one_is_passed_over(void **state)
{
    const char *dir = kit_dir();

    (void)state;
    forget_places();
    if (geteuid() == 0)
        assert_int_equal(chown(dir, USER_1, USER_1), 0);
    in_child(use_xdg, dir);
}

static void open_at_home(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};

    (void)data;
    become(USER_1);
    forget_places();
    (void)setenv("HOME", "/", 1);
    if (hf_open(NULL, &store, &err) != HF_DENIED)
        kit_die("HOME=/: %s", err.text);
    if (strstr(err.text, "cannot create /.local: Permission denied") == NULL)
        kit_die("does not name the directory: %s", err.text);
}

/* As services have it, and containers: the directory that we may not make is named. */
static void no_home_to_speak_of(void **state)
{
    (void)state;
    if (access("/.local", F_OK) == 0)
        skip();
    in_child(open_at_home, NULL);
}

/* A folder for everybody: nobody is to take it away from the others. */
static void a_folder_for_everybody(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store;
    struct hf_error err = {0};
    char url[600];
    char wanted[600];

    (void)state;
    assert_int_equal(chmod(dir, 01777), 0);
    (void)snprintf(url, sizeof url, "file:%s", dir);
    (void)snprintf(wanted, sizeof wanted, "file:%s/holdfast", dir);
    kit_expect(hf_open(url, &store, &err), HF_DENIED, &err);
    assert_non_null(strstr(err.text, wanted));
    assert_null(strstr(err.text, "chmod"));
    kit_expect(hf_open(wanted, &store, &err), HF_OK, &err);
    hf_close(store);
}

/* Holds two locks: one detached, one that ends with its process. */
static void hold_two(void *data)
{
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    become(USER_1);
    if (kit_try_open(data, &base, &err) != HF_OK ||
        kit_take_detached(base, "detached", 60000, &hold, &err) != HF_OK ||
        kit_take(base, "dead", 60000, 0, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    /* Ends without closing: its FIFO stays. */
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

static void look_as_stranger(void *data)
{
    struct hf_store *store;
    struct hf_error err = {0};

    become(USER_2);
    if (hf_open_readonly(data, &store, &err) != HF_DENIED)
        kit_die("a stranger may look: %s", err.text);
}

static void root_may_look(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store;
    struct hf_error err = {0};
    struct stat before;
    struct stat after;
    char url[600];
    int count = 0;

    (void)state;
    if (geteuid() != 0)
        skip();
    (void)snprintf(url, sizeof url, "file:%s", dir);
    assert_int_equal(chown(dir, USER_1, USER_1), 0);
    /* None there yet: none is made. */
    kit_expect(hf_open_readonly(url, &store, &err), HF_OK, &err);
    kit_expect(hf_list(store, "", count_one, &count, &err), HF_OK, &err);
    hf_close(store);
    assert_int_equal(count + kit_count(dir, "", ""), 0);
    in_child(hold_two, dir);
    assert_int_equal(stat(kit_slots(dir), &before), 0);
    kit_expect(hf_open_readonly(url, &store, &err), HF_OK, &err);
    kit_expect(hf_list(store, "", count_one, &count, &err), HF_OK, &err);
    kit_expect(hf_inspect(store, "detached", count_one, &count, &err), HF_OK, &err);
    hf_close(store);
    assert_int_equal(count, 2);
    assert_int_equal(kit_count(dir, "alive", ""),
                     1); /* what the dead left is not root's to clear */
    assert_int_equal(stat(kit_slots(dir), &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(after.st_uid, USER_1);
    kit_expect(hf_open(url, &store, &err), HF_DENIED, &err);
    in_child(look_as_stranger, url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_has_its_own), cmocka_unit_test(a_useless_one_is_passed_over),
        cmocka_unit_test(no_home_to_speak_of),   cmocka_unit_test(a_folder_for_everybody),
        cmocka_unit_test(root_may_look),
    };

    return KIT_RUN(tests);
}
