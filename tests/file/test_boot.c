/* test_boot.c - reboots, containers that disagree about them, and clocks that lie. */
#include "../support/faultkit.h"
#include "core/token.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOOT_1  "00000000-0000-4000-8000-000000000001"
#define BOOT_2  "00000000-0000-4000-8000-000000000002"
#define BOOT_3  "00000000-0000-4000-8000-000000000003"
#define YEAR_US (365 * 24 * HOUR_US)

static void world(const char *boot_id, int64_t wall_us)
{
    kit_world = (struct kit_world){
        .boot_id = boot_id, .wall_fake = true, .wall_us = wall_us, .no_fsync = true};
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

static int held(struct hf_store_base *base)
{
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};
    int count = 0;

    kit_expect(base->ops->list(base, &query, count_one, &count, NULL), HF_OK, NULL);
    return count;
}

/* Leases are gone, detached ones too, and tokens go on although the clock went back ten years. */
static void reboot(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold kept;
    struct kit_hold hold;
    struct hf_error err = {0};
    int64_t wall_us = hf__wall_us();
    uint64_t last = 0;
    const char *boots[] = {BOOT_1, BOOT_2, BOOT_3, BOOT_1};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        world(boots[i], wall_us);
        base = kit_open(dir);
        assert_int_equal(held(base), 0);
        kit_expect(kit_take_detached(base, "detached", HF_TTL_MAX_MS, &kept, &err), HF_OK, &err);
        kit_expect(kit_take(base, "job", HF_TTL_MAX_MS, 0, &hold, &err), HF_OK, &err);
        assert_true(kept.token > last && hold.token > last);
        last = kept.token > hold.token ? kept.token : hold.token;
        assert_int_equal(kit_count(dir, "", "slots-"), 1);
        assert_int_equal(kit_count(dir, "alive", ""), 1);
        kit_close(base);
        wall_us -= 10 * YEAR_US;
    }
    kit_expect(kit_try_open(dir, &base, &err), HF_OK, &err);
    kit_expect(kit_drop(base, &kept, &err), HF_OK, &err);
    kit_close(base);
}

/* Two containers with a boot id each: the second refuses instead of destroying. */
static void two_containers(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *first;
    struct hf_store_base *second;
    struct kit_hold hold;
    struct kit_hold other;
    struct hf_error err = {0};

    (void)state;
    world(BOOT_1, hf__wall_us());
    first = kit_open(dir);
    kit_expect(kit_take(first, "job", 60000, 0, &hold, &err), HF_OK, &err);
    for (int i = 0; i < 3; i++) {
        world(BOOT_2, hf__wall_us());
        kit_expect(kit_try_open_within(dir, 100, &second, &err), HF_UNSUPPORTED, &err);
        assert_non_null(strstr(err.text, "boot id"));
        world(BOOT_1, hf__wall_us());
        kit_expect(kit_renew(first, &hold, &err), HF_OK, &err);
        second = kit_open(dir); /* one of ours still may */
        kit_expect(kit_take(second, "job", 1000, 0, &other, &err), HF_BUSY, &err);
        kit_close(second);
    }
    kit_close(first);
    world(BOOT_2, hf__wall_us());
    second = kit_open(dir);
    world(BOOT_1, hf__wall_us());
    kit_expect(kit_try_open_within(dir, 100, &first, &err), HF_UNSUPPORTED, &err);
    kit_close(second);
}

struct race {
    const char *dir;
    const char *boot_id;
    int start_fd; /* readable, at its end, when it is time */
    int close_fd; /* what keeps it from ending */
};

static void open_and_check(void *data)
{
    struct race *race = data;
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    enum hf_status status;

    kit_world = (struct kit_world){.boot_id = race->boot_id, .no_fsync = true};
    status = kit_try_open(race->dir, &base, &err);
    if (status == HF_UNSUPPORTED || status == HF_UNREACHABLE)
        _exit(3);
    if (status != HF_OK)
        kit_die("%s: %s", hf_status_name(status), err.text);
    for (int i = 0; i < 20; i++) {
        if (kit_take(base, "job", 10000, 5000, &hold, &err) != HF_OK)
            kit_die("take: %s", err.text);
        /* What is ours stays ours: nobody discards the file under a user of it. */
        if (kit_renew(base, &hold, &err) != HF_OK)
            kit_die("renew: %s", err.text);
        if (kit_drop(base, &hold, &err) != HF_OK)
            kit_die("drop: %s", err.text);
    }
}

/* They come at the same moment: whoever gets in keeps what it has. */
static void containers_race(void **state)
{
    (void)state;
    for (long round = 0; round < kit_rounds(60); round++) {
        struct race race[2] = {{.dir = kit_dir(), .boot_id = BOOT_1}, {.boot_id = BOOT_2}};
        pid_t pids[6];
        int in = 0;

        race[1].dir = race[0].dir;
        if (round % 2 == 0) { /* there is a file of an earlier boot */
            kit_world = (struct kit_world){.boot_id = BOOT_3, .no_fsync = true};
            kit_close(kit_open(race[0].dir));
        }
        for (int i = 0; i < 6; i++)
            pids[i] = kit_spawn(open_and_check, &race[i % 2]);
        for (int i = 0; i < 6; i++) {
            int status = kit_wait(pids[i]);

            assert_true(WIFEXITED(status));
            assert_int_not_equal(WEXITSTATUS(status), 1);
            in += WEXITSTATUS(status) == 0;
        }
        assert_true(in > 0);
        kit_remove(race[0].dir);
    }
}

/* Waits for the start and opens. */
static void open_together(void *data)
{
    struct race *race = data;
    struct hf_store_base *base;
    struct hf_error err = {0};
    char byte;

    (void)close(race->close_fd);
    kit_world = (struct kit_world){.boot_id = race->boot_id, .no_fsync = true};
    (void)!read(race->start_fd, &byte, 1); /* until the other end is closed */
    if (kit_try_open(race->dir, &base, &err) != HF_OK)
        kit_die("%s", err.text);
    (void)kit_pair(base, "job");
}

/* The machine comes up, and everything that uses the store starts in the same moment. */
static void crowd_after_a_reboot(void **state)
{
    enum { CROWD = 32 };

    (void)state;
    for (long round = 0; round < kit_rounds(10); round++) {
        struct race race = {.dir = kit_dir(), .boot_id = BOOT_2};
        pid_t pids[CROWD];
        int ends[2];
        int failed = 0;

        world(BOOT_1, hf__wall_us());
        kit_close(kit_open(race.dir));
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        race.start_fd = ends[0];
        race.close_fd = ends[1];
        for (int i = 0; i < CROWD; i++) {
            pids[i] = kit_spawn(open_together, &race);
        }
        (void)close(ends[0]);
        (void)close(ends[1]);
        for (int i = 0; i < CROWD; i++)
            failed += kit_wait(pids[i]) != 0;
        assert_int_equal(failed, 0);
        assert_int_equal(kit_count(race.dir, "", "slots-"), 1);
    }
}

static void time_namespace(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct hf_error err = {0};

    (void)state;
    world(NULL, hf__wall_us());
    kit_world.time_namespace = 4026531834;
    kit_close(kit_open(dir));
    kit_world.time_namespace = 4026532000;
    kit_expect(kit_try_open(dir, &base, &err), HF_UNSUPPORTED, &err);
    assert_non_null(strstr(err.text, "time namespace"));
    kit_world.time_namespace = 4026531834;
    kit_close(kit_open(dir));
}

/* Takes at a wall clock; the token is above the last. */
static uint64_t take_at(struct hf_store_base *base, int64_t wall_us, uint64_t last)
{
    uint64_t token;

    kit_world.wall_us = wall_us;
    token = kit_pair(base, "clock");
    if (token <= last)
        fail_msg("at %lld: token %llu after %llu", (long long)wall_us, (unsigned long long)token,
                 (unsigned long long)last);
    return token;
}

static void wall_clock_anywhere(void **state)
{
    /* 1970, before it, a minute before the end of 2261, next year, and back. */
    const int64_t clocks[] = {0,
                              -1,
                              INT64_MIN,
                              1,
                              YEAR_US,
                              -YEAR_US,
                              9214646400000000LL,
                              0,
                              YEAR_US,
                              INT64_MIN + 1,
                              hf__wall_us(),
                              9214646400000000LL};
    const char *dir = kit_dir();
    struct hf_store_base *base;
    uint64_t last = 0;

    (void)state;
    world(BOOT_1, 0);
    base = kit_open(dir);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        last = take_at(base, clocks[i], last);
    kit_close(base);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        world(i % 2 == 0 ? BOOT_2 : BOOT_1, clocks[i]);
        base = kit_open(dir);
        last = take_at(base, clocks[i], last);
        kit_close(base);
    }
}

/* An hour back and forth between acquires, in two processes' worth of stores. */
static void stepping_clock(void **state)
{
    const char *dir = kit_dir();
    int64_t wall_us = hf__wall_us();
    struct hf_store_base *bases[2];
    struct kit_rng rng = kit_rng(8);
    uint64_t last = 0;

    (void)state;
    world(BOOT_1, wall_us);
    bases[0] = kit_open(dir);
    bases[1] = kit_open(dir);
    for (long i = 0; i < kit_rounds(3000); i++) {
        int64_t step_us = ((int64_t)kit_below(&rng, 3) - 1) * HOUR_US;

        last = take_at(bases[kit_below(&rng, 2)], wall_us + step_us + i, last);
    }
    kit_close(bases[0]);
    kit_close(bases[1]);
    world(BOOT_2, wall_us - YEAR_US);
    bases[0] = kit_open(dir);
    (void)take_at(bases[0], wall_us - YEAR_US, last);
    kit_close(bases[0]);
}

/* The last token there is: given, and then a clear end. */
static void tokens_used_up(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    world(BOOT_1, INT64_MAX);
    base = kit_open(dir);
    assert_int_equal(kit_pair(base, "end"), HF__TOKEN_MAX);
    for (int i = 0; i < 2; i++) {
        kit_expect(kit_take(base, "end", 1000, 0, &hold, &err), HF_CORRUPT, &err);
        assert_non_null(strstr(err.text, "used up"));
        kit_world.wall_us = 1;
    }
    kit_close(base);
    base = kit_open(dir);
    kit_expect(kit_take(base, "end", 1000, 0, &hold, &err), HF_CORRUPT, &err);
    kit_close(base);
    /* After a reboot the floor says the same: refused, not wrapped around. */
    world(BOOT_2, 1);
    if (kit_try_open(dir, &base, &err) == HF_OK) {
        kit_expect(kit_take(base, "other", 1000, 0, &hold, &err), HF_CORRUPT, &err);
        assert_non_null(strstr(err.text, "used up"));
        kit_close(base);
    }
}

/* A machine that has been up for 146 years; one that was started this very moment. */
static void boot_clock(void **state)
{
    const int64_t day_ns = 86400 * HF__NS_PER_S;
    const int64_t clocks[] = {30 * 365 * day_ns, 34 * 365 * day_ns, 0, 1};

    (void)state;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const char *dir = kit_dir();
        struct hf_store_base *base;
        struct kit_hold hold;
        struct kit_hold other;
        struct hf_error err = {0};

        world(BOOT_1, hf__wall_us());
        kit_world.now_fake = true;
        kit_world.now_ns = clocks[i];
        base = kit_open(dir);
        kit_expect(kit_take_detached(base, "job", HF_TTL_MAX_MS, &hold, &err), HF_OK, &err);
        kit_expect(kit_take(base, "job", 1000, 0, &other, &err), HF_BUSY, &err);
        kit_world.now_ns += (HF_TTL_MAX_MS - 1) * HF__NS_PER_MS;
        kit_expect(kit_take(base, "job", 1000, 0, &other, &err), HF_BUSY, &err);
        kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
        kit_world.now_ns += (HF_TTL_MAX_MS + 1) * HF__NS_PER_MS;
        kit_expect(kit_renew(base, &hold, &err), HF_LOST, &err);
        kit_expect(kit_take(base, "job", 1000, 0, &other, &err), HF_OK, &err);
        assert_true(other.token > hold.token);
        kit_expect(kit_drop(base, &hold, &err), HF_LOST, &err);
        kit_expect(kit_drop(base, &other, &err), HF_OK, &err);
        kit_close(base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reboot),          cmocka_unit_test(two_containers),
        cmocka_unit_test(containers_race), cmocka_unit_test(crowd_after_a_reboot),
        cmocka_unit_test(time_namespace),  cmocka_unit_test(wall_clock_anywhere),
        cmocka_unit_test(stepping_clock),  cmocka_unit_test(tokens_used_up),
        cmocka_unit_test(boot_clock),
    };

    return KIT_RUN(tests);
}
