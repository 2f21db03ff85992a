/* test_records_crash.c - writers of records that are killed, stopped or failed by the disk at every
 * call: the old record or the new one is there, whole; and whoever lost the lock writes nothing.
 * run: late asan
 * run: slow */
#include "records.h"
#include "stores/file/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_ENOUGH_MS 4000 /* to reach the rename, on a busy machine */

struct part {
    const char *dir;
    struct kit_hold hold;
    struct kit_plan plan;
    enum hf_status want; /* what its put must say */
    bool fresh;          /* it is the first record of the store */
    const char *first;   /* the key of another one that goes with it; NULL: none */
};

/* A child that puts "new" for a hold of its parent's, and may not live to tell. */
static void put_new(void *data)
{
    struct part *part = data;
    struct hf_store_base *base = kit_open(part->dir);
    struct hf_error err = {0};
    enum hf_status status;

    kit_plan = part->plan;
    status = put_record(base, &part->hold,
                        (struct put){.key = "k", .value = "new", .number = 3, .first = part->first},
                        &err);
    if (kit_plan.seen < part->plan.at)
        _exit(2); /* there is no n-th call any more */
    if (status != part->want)
        kit_die("%s: %s", hf_status_name(status), err.text);
}

static struct hf_store_base *prepare(struct part *part, uint32_t ttl_ms)
{
    struct hf_store_base *base;
    struct hf_error err = {0};

    kit_plan = (struct kit_plan){0};
    part->dir = kit_dir();
    base = kit_open(part->dir);
    kit_expect(kit_take_detached(base, "job", ttl_ms, &part->hold, &err), HF_OK, &err);
    if (!part->fresh)
        kit_expect(put_record(base, &part->hold,
                              (struct put){.key = "k", .value = "old", .number = 1}, &err),
                   HF_OK, &err);
    return base;
}

/* Returns false when a put makes fewer calls than that. */
static bool killed_once(enum kit_action action, long at, bool fresh, const char *first)
{
    struct part part = {
        .fresh = fresh,
        .first = first,
        .plan = {.ops = action == KIT_TORN ? KIT_PWRITE : KIT_ALL, .action = action, .at = at}};
    struct hf_store_base *base;
    struct hf_error err = {0};
    char found[64];
    int status;

    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(&part, 60000);
    status = kit_wait(kit_spawn(put_new, &part));
    if (!WIFSIGNALED(status) && (!WIFEXITED(status) || WEXITSTATUS(status) != 2))
        fail_msg("the child failed at call %ld", at);
    kit_expect(get_record(base, "job", "k", found, &err), HF_OK, &err);
    if (strcmp(found, "new") != 0)
        assert_string_equal(found, fresh ? "nothing" : "old");
    else if (first != NULL)
        expect_record(base, "job", first, "new");
    if (first != NULL)
        kit_expect(get_record(base, "job", first, found, &err), HF_OK, &err);
    /* Whoever comes next is none the worse for it. */
    kit_expect(put_record(base, &part.hold,
                          (struct put){.key = "k", .value = "next", .number = 5, .first = first},
                          &err),
               HF_OK, &err);
    expect_record(base, "job", "k", "next");
    if (first != NULL)
        expect_record(base, "job", first, "next");
    kit_expect(kit_drop(base, &part.hold, &err), HF_OK, &err);
    kit_close(base);
    kit_remove(part.dir);
    return WIFSIGNALED(status);
}

static void killed_at_every_call(void **state)
{
    static const enum kit_action actions[] = {KIT_KILL_BEFORE, KIT_KILL_AFTER, KIT_TORN};

    (void)state;
    for (int i = 0; i < 12; i++) {
        long at = 1;

        while (killed_once(actions[i / 4], at, i % 2 == 0, i % 4 < 2 ? NULL : "s"))
            at++;
        print_message("# %ld calls\n", at - 1);
        assert_true(at > (actions[i / 4] == KIT_TORN ? 1 : 5));
    }
}

/* What the caller is told is what is on record; and a failure leaves no draft behind. */
static bool failed_once(enum kit_action action, int error, long at, const char *first)
{
    struct part part = {.dir = NULL};
    struct hf_store_base *base;
    struct hf_error err = {0};
    enum hf_status status;
    char found[64];
    bool met;

    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(&part, 60000);
    kit_plan = (struct kit_plan){.ops = KIT_ALL, .action = action, .error = error, .at = at};
    status =
        put_record(base, &part.hold,
                   (struct put){.key = "k", .value = "new", .number = 3, .first = first}, &err);
    met = kit_plan.seen >= at;
    kit_plan = (struct kit_plan){0};
    kit_expect(get_record(base, "job", "k", found, NULL), HF_OK, NULL);
    if (status == HF_OK && first != NULL)
        expect_record(base, "job", first, "new");
    if (status == HF_OK)
        assert_string_equal(found, "new");
    else if (status != HF_UNKNOWN)
        assert_string_equal(found, "old");
    if (status != HF_OK && status != HF_UNKNOWN && status != HF_UNREACHABLE)
        fail_msg("call %ld, error %d: %s", at, error, hf_status_name(status));
    if (status != HF_OK)
        assert_non_null(strstr(err.text, part.dir));
    if (action == KIT_FAIL)
        assert_int_equal(record_files(part.dir, "job", "."), 0);
    kit_expect(kit_drop(base, &part.hold, &err), HF_OK, &err);
    kit_close(base);
    kit_remove(part.dir);
    return met;
}

static void failed_at_every_call(void **state)
{
    static const int errors[] = {ENOSPC, EIO};

    (void)state;
    for (int i = 0; i < 8; i++) {
        long at = 1;

        while (failed_once(i % 4 < 2 ? KIT_FAIL : KIT_FAIL_AFTER, errors[i % 2], at,
                           i < 4 ? NULL : "s"))
            at++;
        assert_true(at > 5);
    }
}

/* The folder cannot be synced: that is not a yes, and neither is the second try, until it can. */
static void an_unsynced_folder_is_unknown(void **state)
{
    struct part part = {.dir = NULL};
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct put put = {.key = "k", .value = "new", .number = 2};

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(&part, 60000);
    kit_plan = (struct kit_plan){
        .ops = KIT_FSYNC, .action = KIT_FAIL, .error = EIO, .at = 2, .lasting = true};
    kit_expect(put_record(base, &part.hold, put, &err), HF_UNKNOWN, &err);
    kit_plan.seen = 0; /* the draft is synced, the folder is not */
    kit_expect(put_record(base, &part.hold, put, &err), HF_UNKNOWN, &err);
    kit_plan = (struct kit_plan){0};
    kit_expect(put_record(base, &part.hold, put, &err), HF_STALE, &err);
    kit_close(base);
}

/* Two in one step: both are there when it is done, the first is there if the second is, and each
 * goes its own way from then on. */
static void two_in_one_step(void **state)
{
    struct part part = {.dir = NULL};
    struct hf_store_base *base;
    struct hf_error err = {0};
    long count;

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(&part, 60000);
    kit_expect(put_record(base, &part.hold,
                          (struct put){.key = "k", .value = "both", .number = 3, .first = "s"},
                          &err),
               HF_OK, &err);
    expect_record(base, "job", "k", "both");
    expect_record(base, "job", "s", "both");
    assert_int_equal(record_files(part.dir, "job", "."), 0);
    kit_expect(list_records(base, "job", "", &count, &err), HF_OK, &err);
    assert_int_equal(count, 2);
    kit_expect(
        put_record(base, &part.hold, (struct put){.key = "k", .value = "alone", .number = 4}, &err),
        HF_OK, &err);
    expect_record(base, "job", "s", "both");
    /* A second step leaves a first that is newer alone, and is refused as a whole by a second. */
    kit_expect(
        put_record(base, &part.hold, (struct put){.key = "s", .value = "newer", .number = 9}, &err),
        HF_OK, &err);
    kit_expect(put_record(base, &part.hold,
                          (struct put){.key = "k", .value = "again", .number = 6, .first = "s"},
                          &err),
               HF_OK, &err);
    expect_record(base, "job", "k", "again");
    expect_record(base, "job", "s", "newer");
    kit_expect(put_record(base, &part.hold,
                          (struct put){.key = "k", .value = "late", .number = 6, .first = "t"},
                          &err),
               HF_STALE, &err);
    expect_record(base, "job", "t", NULL);
    kit_expect(kit_drop(base, &part.hold, &err), HF_OK, &err);
    kit_expect(put_record(base, &part.hold,
                          (struct put){.key = "k", .value = "lost", .number = 20, .first = "t"},
                          &err),
               HF_LOST, &err);
    expect_record(base, "job", "k", "again");
    expect_record(base, "job", "t", NULL);
    assert_int_equal(record_files(part.dir, "job", "."), 0);
    kit_close(base);
}

/* What may be forgotten is written by the holder alone as well, in order, and leaves no draft. */
static void forgettable_by_the_same_rules(void **state)
{
    struct part part = {.dir = NULL};
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct put put = {.key = "k", .value = "new", .number = 1, .forgettable = true};

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(&part, 60000);
    kit_expect(put_record(base, &part.hold, put, &err), HF_STALE, &err);
    put.number = 2;
    kit_expect(put_record(base, &part.hold, put, &err), HF_OK, &err);
    expect_record(base, "job", "k", "new");
    kit_expect(kit_drop(base, &part.hold, &err), HF_OK, &err);
    put.number = 3;
    put.value = "late";
    kit_expect(put_record(base, &part.hold, put, &err), HF_LOST, &err);
    expect_record(base, "job", "k", "new");
    assert_int_equal(record_files(part.dir, "job", "."), 0);
    kit_close(base);
}

/* Begins a put in a child, which stops where its plan says. */
static struct hf_store_base *begin_put(struct part *part, uint32_t ttl_ms, pid_t *child)
{
    struct hf_store_base *base;

    kit_world = (struct kit_world){.no_fsync = true};
    base = prepare(part, ttl_ms);
    *child = kit_spawn(put_new, part);
    kit_wait_stopped(*child);
    return base;
}

static void go_on(pid_t child)
{
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(kit_wait(child), 0);
}

/* Stopped after its record is written and synced, before it has the page: the lock ends, another
 * takes it and writes, and when it goes on, it is told that it lost. */
static void frozen_before_the_check(void **state)
{
    struct part part = {.plan = {.ops = KIT_FSYNC, .action = KIT_STOP_AFTER, .at = 1},
                        .want = HF_LOST};
    struct kit_hold next;
    struct hf_error err = {0};
    pid_t child;
    struct hf_store_base *base = begin_put(&part, LONG_ENOUGH_MS, &child);

    (void)state;
    kit_expect(kit_take(base, "job", 60000, 20000, &next, &err), HF_OK, &err);
    kit_expect(
        put_record(base, &next, (struct put){.key = "k", .value = "done", .number = 1}, &err),
        HF_OK, &err);
    go_on(child);
    expect_record(base, "job", "k", "done");
    assert_int_equal(record_files(part.dir, "job", "."), 0);
    kit_expect(kit_drop(base, &next, &err), HF_OK, &err);
    kit_close(base);
}

/* Stopped between the check and the rename: nobody gets the lock in that time, however long its
 * hold is over; so what it writes then is older than what any other writes. */
static void frozen_before_the_rename(void **state)
{
    struct part part = {.plan = {.ops = KIT_RENAME, .action = KIT_STOP_BEFORE, .at = 1},
                        .want = HF_OK};
    struct kit_hold next;
    struct hf_error err = {0};
    pid_t child;
    struct hf_store_base *base = begin_put(&part, LONG_ENOUGH_MS, &child);

    (void)state;
    kit_sleep_ms(LONG_ENOUGH_MS);
    kit_expect(kit_take_on(base, "job", &(struct kit_terms){.ttl_ms = 60000, .patience_ms = 100},
                           &next, &err),
               HF_UNREACHABLE, &err);
    assert_non_null(strstr(err.text, "stopped"));
    expect_record(base, "job", "k", "old"); /* reading waits for nobody */
    assert_int_equal(kill(child, SIGCONT), 0);
    kit_expect(kit_take(base, "job", 60000, 20000, &next, &err), HF_OK, &err);
    assert_int_equal(kit_wait(child), 0);
    expect_record(base, "job", "k", "new");
    kit_expect(
        put_record(base, &next, (struct put){.key = "k", .value = "done", .number = 1}, &err),
        HF_OK, &err);
    expect_record(base, "job", "k", "done");
    kit_close(base);
}

/* A copy of an earlier write, stopped on its way: it must not undo the later one. */
static void a_late_copy_undoes_nothing(void **state)
{
    struct part part = {.plan = {.ops = KIT_FSYNC, .action = KIT_STOP_AFTER, .at = 1},
                        .want = HF_STALE};
    struct hf_error err = {0};
    pid_t child;
    struct hf_store_base *base = begin_put(&part, 60000, &child);

    (void)state;
    kit_expect(
        put_record(base, &part.hold, (struct put){.key = "k", .value = "done", .number = 4}, &err),
        HF_OK, &err);
    go_on(child);
    expect_record(base, "job", "k", "done");
    kit_close(base);
}

/* What the disk was asked for, in order: F a file's sync, D a folder's, R a rename. */
static char steps[256];
static int watch_fd = -1; /* the slot file, by another description */
static bool synced_under_lock;

static void step(char what)
{
    size_t len = strlen(steps);

    if (len + 1 < sizeof steps)
        steps[len] = what;
}

static int watch_fsync(int fd)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    step(S_ISDIR(st.st_mode) ? 'D' : 'F');
    assert_int_equal(fcntl(watch_fd, F_OFD_GETLK, &any), 0);
    synced_under_lock |= any.l_type != F_UNLCK;
    return 0;
}

static int watch_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    step('R');
    assert_int_equal(fcntl(watch_fd, F_OFD_GETLK, &any), 0);
    assert_int_not_equal(any.l_type, F_UNLCK); /* the watch sees locks, and here there is one */
    return renameat(from_dir, from, to_dir, to);
}

/* The content is safe before anybody sees it, its name with the next one. */
static void expect_steps_forgettable(struct hf_store_base *base, const struct kit_hold *hold)
{
    struct put put = {.key = "k", .value = "y"};
    struct hf_error err = {0};

    for (uint64_t i = 5; i <= 7; i++) {
        memset(steps, 0, sizeof steps);
        put.number = 2 * i;
        put.first = i == 6 ? "s" : NULL;
        put.forgettable = i < 7;
        kit_expect(put_record(base, hold, put, &err), HF_OK, &err);
        assert_string_equal(steps, i == 5 ? "FR" : i == 6 ? "FRR" : "FRD");
        expect_record(base, "job", "k", "y");
    }
}

/* The first one also makes the folders safe; no page is locked while the disk is waited for. */
static void synced_in_this_order(void **state)
{
    struct hf__file_sys sys = kit_sys;
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char url[600];

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    kit_close(kit_open(dir));
    (void)snprintf(url, sizeof url, "file:%s", dir);
    watch_fd = open(kit_slots(dir), O_RDWR | O_CLOEXEC);
    assert_true(watch_fd >= 0);
    kit_expect(hf__file_open_on(&sys, &kit_host, url, HF_NEVER, &base, &err), HF_OK, &err);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    sys.fsync = watch_fsync;
    sys.renameat = watch_rename;
    for (uint64_t i = 1; i <= 4; i++) {
        memset(steps, 0, sizeof steps);
        kit_expect(
            put_record(base, &hold,
                       (struct put){
                           .key = "k", .value = "x", .number = 2 * i, .first = i < 4 ? NULL : "s"},
                       &err),
            HF_OK, &err);
        assert_string_equal(steps, i == 1 ? "DDFRD" : i < 4 ? "FRD" : "FRRD");
    }
    expect_steps_forgettable(base, &hold);
    assert_false(synced_under_lock);
    sys = kit_sys;
    (void)close(watch_fd);
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_call),          cmocka_unit_test(failed_at_every_call),
        cmocka_unit_test(an_unsynced_folder_is_unknown), cmocka_unit_test(two_in_one_step),
        cmocka_unit_test(frozen_before_the_check),       cmocka_unit_test(frozen_before_the_rename),
        cmocka_unit_test(a_late_copy_undoes_nothing),    cmocka_unit_test(synced_in_this_order),
        cmocka_unit_test(forgettable_by_the_same_rules)};

    return KIT_RUN(tests);
}
