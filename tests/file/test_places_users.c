/* test_places_users.c - directories that others own or can write, umasks that take rights away; and
 * where two users share a store. */
#include "places.h"
#include "stores/file/floor.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    for (long round = 0; round < kit_rounds(30); round++) { /* each time anybody may be first */
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
        cmocka_unit_test(of_another_user),    cmocka_unit_test(unwritable),
        cmocka_unit_test(writable_by_others), cmocka_unit_test(shared_by_a_group),
        cmocka_unit_test(odd_umasks),
    };

    return KIT_RUN(tests);
}
