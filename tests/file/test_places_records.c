/* test_places_records.c - records where two users share a store, whatever their umask. */
#include "../support/record.h"
#include "places.h"
#include "stores/file/record_file.h"

#include <holdfast/record.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool copy_value(const struct hf_record *record, void *data)
{
    (void)snprintf(data, 32, "%s", (const char *)record->value);
    return true;
}

static void check_modes(const char *dir)
{
    char path[800], below[RECORD_PATH_SIZE];
    struct stat st;

    hf__record_shard(below, "job");
    (void)snprintf(path, sizeof path, "%s/%s", dir, below);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 02770 && st.st_gid == GROUP);
    hf__record_path(below, "job", "k");
    (void)snprintf(path, sizeof path, "%s/%s", dir, below);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0660 && st.st_gid == GROUP);
}

/* Reads what the other one left, and writes in its place. */
static void write_as(uid_t uid, const char *dir, const char *there, const char *value)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err = {0};
    char found[32] = "nothing";

    become(uid, GROUP);
    (void)umask(0777);
    expect(try_open(dir, "?shared=group", &store, &err), HF_OK, &err, __LINE__);
    expect(hf_acquire(store, "job", NULL, &lease, &err), HF_OK, &err, __LINE__);
    expect(get_record(store, "job", "k", copy_value, found, &err), HF_OK, &err, __LINE__);
    CHECK(strcmp(found, there) == 0);
    expect(hf_record_put(lease, "k", value, strlen(value), 0, &err), HF_OK, &err, __LINE__);
    expect(get_record(store, "job", "k", copy_value, found, &err), HF_OK, &err, __LINE__);
    CHECK(strcmp(found, value) == 0);
    check_modes(dir);
    expect(hf_release(lease, &err), HF_OK, &err, __LINE__);
    hf_close(store);
}

static void first(void *data)
{
    write_as(USER_1, data, "nothing", "one");
}

static void second(void *data)
{
    write_as(USER_2, data, "one", "two");
}

static void third(void *data)
{
    write_as(USER_1, data, "two", "three");
}

static void shared_by_a_group(void **state)
{
    const char *dir = kit_dir();

    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chown(dir, USER_1, GROUP), 0);
    assert_int_equal(chmod(dir, 02770), 0);
    in_child(first, dir);
    in_child(second, dir);
    in_child(third, dir);
}

static void write_alone(void *data)
{
    struct hf_store *store;
    struct hf_lease *lease;
    struct hf_error err = {0};
    char path[800], below[RECORD_PATH_SIZE];
    struct stat st;

    become(USER_1, USER_1);
    (void)umask(0);
    expect(try_open(data, "", &store, &err), HF_OK, &err, __LINE__);
    expect(hf_acquire(store, "job", NULL, &lease, &err), HF_OK, &err, __LINE__);
    expect(hf_record_put(lease, "k", "mine", 4, 0, &err), HF_OK, &err, __LINE__);
    hf__record_path(below, "job", "k");
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)data, below);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    hf__record_shard(below, "job");
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)data, below);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
    expect(hf_release(lease, &err), HF_OK, &err, __LINE__);
    hf_close(store);
}

/* Root may look at a user's records, and changes nothing. */
static void private_and_seen_by_root(void **state)
{
    const char *dir = kit_dir();
    struct hf_store *store;
    struct hf_error err = {0};
    char url[600], found[32] = "nothing";

    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chown(dir, USER_1, USER_1), 0);
    in_child(write_alone, dir);
    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf_open_readonly(url, &store, &err), HF_OK, &err);
    kit_expect(get_record(store, "job", "k", copy_value, found, &err), HF_OK, &err);
    assert_string_equal(found, "mine");
    hf_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_by_a_group),
                                       cmocka_unit_test(private_and_seen_by_root)};

    return KIT_RUN(tests);
}
