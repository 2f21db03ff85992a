/* test_records_life.c - how long records live: over reboots and repairs, until they expire, and no
 * longer than the directory is where its URL says.
 * run: threads, run: slow */
#include "records.h"
#include "stores/file/record_sweep.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOOT_1 "00000000-0000-4000-8000-000000000001"
#define BOOT_2 "00000000-0000-4000-8000-000000000002"

static void put_ok(struct hf_store_base *base, const struct kit_hold *hold, struct put put)
{
    struct hf_error err = {0};

    kit_expect(put_record(base, hold, put, &err), HF_OK, &err);
}

static void over_a_reboot(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct kit_hold next;
    struct hf_error err = {0};

    (void)state;
    kit_world = (struct kit_world){.boot_id = BOOT_1, .no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take_detached(base, "job", HF_TTL_MAX_MS, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "before", .number = 7});
    kit_close(base);
    kit_world.boot_id = BOOT_2;
    base = kit_open(dir);
    expect_record(base, "job", "k", "before");
    /* The hold of the other boot is over, and its token below every new one. */
    kit_expect(
        put_record(base, &hold, (struct put){.key = "k", .value = "late", .number = 8}, &err),
        HF_LOST, &err);
    kit_expect(kit_take(base, "job", 60000, 0, &next, &err), HF_OK, &err);
    put_ok(base, &next, (struct put){.key = "k", .value = "after", .number = 1});
    expect_record(base, "job", "k", "after");
    kit_close(base);
}

static enum hf_status read_only(const char *dir, const char *name, const char *key, char out[64])
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    char url[600];
    enum hf_status status;
    long count;

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_ops.open_readonly(&kit_host, url, HF_NEVER, &base, &err), HF_OK, &err);
    status = get_record(base, name, key, out, &err);
    kit_expect(list_records(base, name, "", &count, &err), HF_OK, &err);
    assert_int_equal(count, strcmp(out, "nothing") != 0);
    kit_close(base);
    return status;
}

/* Also before the first lock of this boot is taken; and nothing is made where nothing is. */
static void who_only_reads(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    struct stat st;
    char none[600];
    char found[64];

    (void)state;
    kit_world = (struct kit_world){.boot_id = BOOT_1, .no_fsync = true};
    (void)snprintf(none, sizeof none, "%s/none", dir);
    assert_int_equal(read_only(none, "job", "k", found), HF_OK);
    assert_string_equal(found, "nothing");
    assert_int_not_equal(stat(none, &st), 0);
    base = kit_open(dir);
    assert_int_equal(read_only(dir, "job", "k", found), HF_OK); /* no record yet, and no folder */
    assert_int_equal(kit_count(dir, "", "records"), 0);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "there", .number = 1});
    assert_int_equal(read_only(dir, "job", "k", found), HF_OK);
    assert_string_equal(found, "there");
    kit_close(base); /* this machine's boot id is another one: there is no slot file of it */
    assert_int_equal(read_only(dir, "job", "k", found), HF_OK);
    assert_string_equal(found, "there");
}

/* The slot file is thrown away, the records are not. */
static void a_repair_leaves_them(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char path[700];
    char url[600];

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "kept", .number = 1});
    kit_close(base);
    (void)snprintf(path, sizeof path, "%s/floor", dir);
    assert_int_equal(truncate(path, 3), 0);
    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(kit_try_open(dir, &base, &err), HF_CORRUPT, &err);
    kit_expect(hf__file_ops.repair(&kit_host, url, hold.token, &err), HF_OK, &err);
    base = kit_open(dir);
    expect_record(base, "job", "k", "kept");
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "new", .number = 1});
    kit_close(base);
}

/* Nobody else would see what we write there. */
static void a_moved_directory(void **state)
{
    const char *top = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char dir[600], moved[600], found[64];

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    (void)snprintf(dir, sizeof dir, "%s/store", top);
    (void)snprintf(moved, sizeof moved, "%s/moved", top);
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "x", .number = 1});
    assert_int_equal(rename(dir, moved), 0);
    kit_sleep_ms(20); /* it is not looked for at every call */
    kit_expect(put_record(base, &hold, (struct put){.key = "k", .value = "y", .number = 2}, &err),
               HF_LOST, &err);
    kit_expect(get_record(base, "job", "k", found, &err), HF_CORRUPT, &err);
    kit_close(base);
}

enum { MANY = 300, FOR_EVER = 20 };

/* Those that pass by remove them, a few at a time, and nothing else. */
static void what_has_expired_is_removed(void **state)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    uint64_t number = 0;
    long before, after, count;
    char key[16];

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true, .wall_fake = true, .wall_us = hf__wall_us()};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 600000, 0, &hold, &err), HF_OK, &err);
    for (int i = 0; i < MANY + FOR_EVER; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        put_ok(base, &hold,
               (struct put){.key = key,
                            .value = "x",
                            .number = ++number,
                            .keep_ms = i < MANY     ? 60000
                                       : i % 2 == 0 ? 0
                                                    : 600000});
    }
    assert_int_equal(record_files(dir, "job", ""), MANY + FOR_EVER);
    kit_world.wall_us += 61 * INT64_C(1000000);
    kit_expect(list_records(base, "job", "", &count, &err), HF_OK, &err);
    assert_int_equal(count, FOR_EVER); /* not shown from now on */
    for (int i = 0; i < 2000 && record_files(dir, "job", "") > FOR_EVER + 5; i++) {
        before = record_files(dir, "job", "");
        put_ok(base, &hold,
               (struct put){.key = "key-311", .value = "x", .number = ++number, .keep_ms = 600000});
        after = record_files(dir, "job", "");
        assert_in_range(before - after, 0, 64); /* bounded */
    }
    assert_in_range(record_files(dir, "job", ""), FOR_EVER, FOR_EVER + 5);
    kit_expect(list_records(base, "job", "", &count, &err), HF_OK, &err);
    assert_int_equal(count, FOR_EVER);
    kit_close(base);
}

static void drafts_of_the_dead_are_removed(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char shard[RECORD_PATH_SIZE], path[2][800];
    struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "x", .number = 1});
    hf__record_shard(shard, "job");
    for (int i = 0; i < 2; i++) {
        FILE *file;

        (void)snprintf(path[i], sizeof path[i], "%s/%s/.00000000deadbeef-%d", dir, shard, i);
        file = fopen(path[i], "w");
        assert_non_null(file);
        (void)fclose(file);
    }
    assert_int_equal(utimensat(AT_FDCWD, path[0], long_ago, 0), 0);
    hf__record_sweep(hf__file_of(base), "job");
    assert_int_not_equal(access(path[0], F_OK), 0);
    assert_int_equal(access(path[1], F_OK), 0); /* its writer may be at work */
    expect_record(base, "job", "k", "x");
    kit_close(base);
}

struct sweep {
    const char *dir;
    struct kit_plan plan;
};

static void sweep_and_stop(void *data)
{
    struct sweep *sweep = data;
    struct hf_store_base *base = kit_open(sweep->dir);

    kit_plan = sweep->plan;
    hf__record_sweep(hf__file_of(base), "job");
}

/* A sweep that stops after its n-th call, while a new record comes in place of the one that has
 * expired. False if there are fewer calls. */
static bool replaced_during_a_sweep(long at)
{
    struct sweep sweep = {.dir = kit_dir(),
                          .plan = {.ops = KIT_ALL, .action = KIT_STOP_AFTER, .at = at}};
    struct put put = {.key = "k", .value = "new", .number = 2, .patience_ms = 50};
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    enum hf_status status;
    bool stopped;
    pid_t child;
    int how;

    kit_plan = (struct kit_plan){0};
    base = kit_open(sweep.dir);
    kit_expect(kit_take(base, "job", 600000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "old", .number = 1, .keep_ms = 1});
    kit_sleep_ms(2);
    child = kit_spawn(sweep_and_stop, &sweep);
    assert_int_equal(waitpid(child, &how, WUNTRACED), child);
    stopped = WIFSTOPPED(how);
    status = put_record(base, &hold, put, &err); /* may find the page locked */
    if (stopped) {
        assert_int_equal(kill(child, SIGCONT), 0);
        assert_int_equal(kit_wait(child), 0);
    }
    put.patience_ms = 0;
    if (status != HF_UNREACHABLE)
        kit_expect(status, HF_OK, &err);
    else
        put_ok(base, &hold, put);
    expect_record(base, "job", "k", "new");
    kit_close(base);
    kit_remove(sweep.dir);
    return stopped;
}

static void a_sweep_removes_nothing_new(void **state)
{
    long at = 1;

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    /* A sweep that finds the page in use leaves early: only three in a row are the end. */
    for (int early = 0; early < 3; early++) {
        while (replaced_during_a_sweep(at)) {
            at++;
            early = 0;
        }
    }
    assert_true(at > 4);
}

struct reader {
    struct hf_store_base *base;
    atomic_bool stop;
};

/* Readers without any lock see the old record or the new one. */
static void *read_all_the_time(void *data)
{
    struct reader *reader = data;
    char found[64];

    while (!atomic_load(&reader->stop))
        if (get_record(reader->base, "job", "k", found, NULL) != HF_OK || found[0] != 'v')
            return data;
    return NULL;
}

static void readers_see_one_or_the_other(void **state)
{
    const char *dir = kit_fast_dir();
    struct reader reader;
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    pthread_t thread;
    void *failed;
    char value[60];

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 600000, 0, &hold, &err), HF_OK, &err);
    put_ok(base, &hold, (struct put){.key = "k", .value = "v", .number = 1});
    reader = (struct reader){.base = kit_open(dir)};
    assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
    for (uint64_t i = 2; i <= (uint64_t)kit_rounds(2000); i++) {
        (void)snprintf(value, sizeof value, "v%*d", (int)(i % 50) + 1, 7);
        put_ok(base, &hold, (struct put){.key = "k", .value = value, .number = i});
    }
    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    kit_close(reader.base);
    kit_close(base);
}

/* And a listing finds each of them. */
static void ten_thousand_keys(void **state)
{
    const char *dir = kit_fast_dir();
    long keys = kit_rounds(10000) < 10000 ? kit_rounds(10000) : 10000;
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char key[32];
    long count;

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 600000, 0, &hold, &err), HF_OK, &err);
    for (long i = 0; i < keys; i++) {
        (void)snprintf(key, sizeof key, "once:%ld", i);
        put_ok(base, &hold, (struct put){.key = key, .value = key, .number = (uint64_t)i + 1});
    }
    kit_expect(list_records(base, "job", "once:", &count, &err), HF_OK, &err);
    assert_int_equal(count, keys);
    expect_record(base, "job", key, key);
    kit_close(base);
    kit_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(over_a_reboot),
                                       cmocka_unit_test(who_only_reads),
                                       cmocka_unit_test(a_repair_leaves_them),
                                       cmocka_unit_test(a_moved_directory),
                                       cmocka_unit_test(what_has_expired_is_removed),
                                       cmocka_unit_test(drafts_of_the_dead_are_removed),
                                       cmocka_unit_test(a_sweep_removes_nothing_new),
                                       cmocka_unit_test(readers_see_one_or_the_other),
                                       cmocka_unit_test(ten_thousand_keys)};

    return KIT_RUN(tests);
}
