/* test_damage.c - a slot file and a floor that are not what they were.
 *
 * Damage is refused with the sentence that names the way out; the way out works, and tokens go on
 * above all that was seen before. The wall clock stands at 1, so that it cannot help. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 150 /* enough to fill buckets and split them */

struct sample {
    const char *dir;
    uint64_t last[NAMES];
    uint64_t highest;
    off_t size;
};

static void name_of(char *out, size_t size, int i)
{
    (void)snprintf(out, size, "lock-%d", i);
}

/* A store that has grown, with held and idle locks. */
static struct sample make_sample_of(const char *boot_id)
{
    struct sample sample = {.dir = kit_fast_dir()};
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    struct stat st;
    char name[32];

    kit_world =
        (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true, .boot_id = boot_id};
    base = kit_open(sample.dir);
    for (int i = 0; i < NAMES; i++) {
        name_of(name, sizeof name, i);
        kit_expect(kit_take_detached(base, name, 3600000, &hold, &err), HF_OK, &err);
        sample.last[i] = hold.token;
        if (hold.token > sample.highest)
            sample.highest = hold.token;
        if (i % 5 == 0)
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    kit_close(base);
    assert_int_equal(stat(kit_slots(sample.dir), &st), 0);
    sample.size = st.st_size;
    assert_true(sample.size > PAGE_SIZE * (1 + (off_t)ROOTS));
    return sample;
}

static struct sample make_sample(void)
{
    return make_sample_of(NULL);
}

static bool count_one(const struct hf_lock_info *info, void *data)
{
    (void)info;
    ++*(int *)data;
    return true;
}

/* HF_OK or a refusal that says how to go on. */
static bool refused(enum hf_status status, const struct hf_error *err)
{
    if (status == HF_OK || status == HF_BUSY)
        return false;
    kit_expect(status, HF_CORRUPT, err);
    if (strstr(err->text, "holdfast --store 'file:") == NULL || strstr(err->text, "repair") == NULL)
        fail_msg("the way out is not named: %s", err->text);
    return true;
}

/* Uses every lock and lists them. Returns true if any of it was refused. */
static bool use_all(const char *dir)
{
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    bool found = false;
    int count = 0;
    char name[32];

    if (refused(kit_try_open(dir, &base, &err), &err))
        return true;
    found = refused(base->ops->list(base, &query, count_one, &count, &err), &err);
    for (int i = 0; i < NAMES; i++) {
        enum hf_status status;

        name_of(name, sizeof name, i);
        status = kit_take(base, name, 1000, 0, &hold, &err);
        found = refused(status, &err) || found;
        if (status == HF_OK)
            found = refused(kit_drop(base, &hold, &err), &err) || found;
    }
    kit_close(base);
    return found;
}

static void repair(const char *dir, uint64_t above)
{
    struct hf_error report = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_ops.repair(&kit_host, url, above, &report), HF_OK, &report);
    assert_true(strlen(report.text) > 0);
}

/* Every lock can be had, or is held still; no token went back. */
static void usable(const char *dir, const struct sample *sample)
{
    struct hf_store_base *base = kit_open(dir);
    char name[32];

    for (int i = 0; i < NAMES; i++) {
        struct kit_hold hold;
        struct hf_error err = {0};
        enum hf_status status;

        name_of(name, sizeof name, i);
        status = kit_take(base, name, 1000, 0, &hold, &err);
        assert_false(refused(status, &err));
        if (status == HF_OK && hold.token <= sample->last[i])
            fail_msg("token %llu of %s after %llu", (unsigned long long)hold.token, name,
                     (unsigned long long)sample->last[i]);
        if (status == HF_OK)
            kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    }
    kit_close(base);
    assert_false(use_all(dir));
}

static void fresh_copy(const char *from, const char *to)
{
    kit_remove(to);
    assert_int_equal(mkdir(to, 0700), 0);
    kit_copy(from, to);
}

static void truncated(void **state)
{
    struct sample sample = make_sample();
    const char *dir = kit_fast_dir();
    off_t step = kit_rounds(5) >= 5 ? 256 : 1024 + 256;

    (void)state;
    for (off_t size = 0, round = 0; size < sample.size; size += step, round++) {
        fresh_copy(sample.dir, dir);
        assert_int_equal(truncate(kit_slots(dir), size), 0);
        if (!use_all(dir))
            fail_msg("cut at %lld of %lld, and nobody saw it", (long long)size,
                     (long long)sample.size);
        if (round % 8 != 0) /* it makes sure that the disk has it, which takes its time */
            continue;
        repair(dir, 0);
        usable(dir, &sample);
    }
}

/* What was cut off must not be taken for room to grow: pages would serve two buckets. */
static void truncated_and_used(void **state)
{
    struct sample sample = make_sample();
    const char *dir = kit_fast_dir();

    (void)state;
    for (off_t pages = 1; pages < sample.size / PAGE_SIZE; pages++) {
        struct hf_store_base *base;
        struct kit_hold hold;
        struct hf_error err = {0};
        char name[32];

        fresh_copy(sample.dir, dir);
        assert_int_equal(truncate(kit_slots(dir), pages * PAGE_SIZE), 0);
        if (kit_try_open(dir, &base, &err) == HF_OK) {
            for (int i = 0; i < 200; i++) {
                (void)snprintf(name, sizeof name, "more-%d", i);
                (void)refused(kit_take_detached(base, name, 60000, &hold, &err), &err);
            }
            kit_close(base);
        }
        if (!use_all(dir))
            fail_msg("cut to %lld pages, and growing hid it", (long long)pages);
    }
}

static void flip(const char *path, off_t at, unsigned char bits)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte = 0;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* Is there anything at this place that the store ever looks at? */
static bool matters(const char *path, off_t at)
{
    struct stat st;
    char block[SLOT_SIZE];
    static const char zeros[SLOT_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, block, sizeof block, at / SLOT_SIZE * SLOT_SIZE), SLOT_SIZE);
    (void)close(fd);
    if (at < PAGE_SIZE)
        return at < SLOT_SIZE;
    return memcmp(block, zeros, sizeof block) != 0;
}

static void flipped(void **state)
{
    struct sample sample = make_sample();
    const char *dir = kit_fast_dir();
    struct kit_rng rng = kit_rng(5);
    long seen = 0;

    (void)state;
    for (long round = 0; round < kit_rounds(500); round++) {
        bool header = kit_below(&rng, 10) == 0;
        off_t at = (off_t)kit_below(&rng, header ? SLOT_SIZE : (uint64_t)sample.size);
        unsigned char bits = (unsigned char)(1u << kit_below(&rng, 8));

        if (!matters(kit_slots(sample.dir), at))
            continue;
        fresh_copy(sample.dir, dir);
        flip(kit_slots(dir), at, bits);
        if (!use_all(dir))
            fail_msg("bits %x flipped at %lld, and nobody saw it", (unsigned)bits, (long long)at);
        seen++;
        if (round % 16 == 0) {
            repair(dir, 0);
            usable(dir, &sample);
        }
    }
    assert_true(seen > 10);
}

/* Whole blocks of garbage: whatever happens, it is no crash and no endless loop. */
static void garbage(void **state)
{
    struct sample sample = make_sample();
    const char *dir = kit_fast_dir();
    struct kit_rng rng = kit_rng(6);

    (void)state;
    for (long round = 0; round < kit_rounds(100); round++) {
        unsigned char block[PAGE_SIZE];
        off_t at = (off_t)(kit_below(&rng, (uint64_t)sample.size / SLOT_SIZE) * SLOT_SIZE);
        size_t len = kit_below(&rng, 2) == 0 ? SLOT_SIZE : PAGE_SIZE;
        int fd;

        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (unsigned char)kit_below(&rng, 256);
        fresh_copy(sample.dir, dir);
        fd = open(kit_slots(dir), O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, block, len, at), (ssize_t)len);
        (void)close(fd);
        (void)use_all(dir);
        if (round % 4 != 0)
            continue;
        repair(dir, 0);
        usable(dir, &sample);
    }
}

static void write_floor(const char *dir, const char *text, size_t len)
{
    char path[600];
    int fd;

    (void)snprintf(path, sizeof path, "%s/floor", dir);
    fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    (void)close(fd);
}

static size_t read_floor(const char *dir, char *text, size_t size)
{
    char path[600];
    ssize_t got;
    int fd;

    (void)snprintf(path, sizeof path, "%s/floor", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = read(fd, text, size);
    (void)close(fd);
    assert_true(got > 0);
    return (size_t)got;
}

static void expect_floor_refused(const char *dir, const char *what, size_t at)
{
    struct hf_store_base *base;
    struct hf_error err = {0};

    if (!refused(kit_try_open(dir, &base, &err), &err))
        fail_msg("floor %s at %zu, and nobody saw it", what, at);
}

/* On this boot the slot file still knows the promise; after the next, only the person knows. */
static void bad_floor(void **state)
{
    struct sample sample = make_sample();
    const char *dir = kit_fast_dir();
    char text[200];
    size_t len = read_floor(sample.dir, text, sizeof text);

    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        fresh_copy(sample.dir, dir);
        write_floor(dir, text, cut);
        expect_floor_refused(dir, "cut", cut);
        if (cut % 8 != 0)
            continue;
        repair(dir, 0);
        usable(dir, &sample);
    }
    for (size_t bit = 0; bit < 8 * len; bit++) {
        fresh_copy(sample.dir, dir);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        write_floor(dir, text, len);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        expect_floor_refused(dir, "flipped", bit);
    }
    fresh_copy(sample.dir, dir);
    memset(text + len, 0, 10);
    write_floor(dir, text, len + 10);
    expect_floor_refused(dir, "followed by zeros", len);
}

/* A reboot and a bad floor: last boot's slot file can still be read, and knows enough. */
static void bad_floor_after_reboot(void **state)
{
    struct sample sample = make_sample_of("00000000-0000-4000-8000-000000000009");

    (void)state;
    kit_world.boot_id = NULL;
    write_floor(sample.dir, "gone", 4);
    expect_floor_refused(sample.dir, "gone", 0);
    repair(sample.dir, 0);
    usable(sample.dir, &sample);
}

static void no_floor(void **state)
{
    struct sample sample = make_sample();
    char path[600];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/floor", sample.dir);
    assert_int_equal(unlink(path), 0);
    kit_world.boot_id = "00000000-0000-4000-8000-000000000009";
    expect_floor_refused(sample.dir, "missing", 0);
    repair(sample.dir, 1000000);
    for (int i = 0; i < NAMES; i++)
        sample.last[i] = 1000000;
    kit_world.boot_id = NULL; /* repair asks the real system */
    usable(sample.dir, &sample);
}

/* "Tokens from now on are above `above`", also if there was nothing else to repair. */
static void repair_above(void **state)
{
    struct sample sample = make_sample();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    char name[32];

    (void)state;
    name_of(name, sizeof name, 0); /* idle in the sample */
    for (uint64_t above = sample.highest; above < (uint64_t)HOUR_US * 100; above *= 3) {
        repair(sample.dir, above);
        base = kit_open(sample.dir);
        assert_true(kit_pair(base, name) > above);
        kit_close(base);
    }
    /* A sound store keeps its leases while the promise covers the number. */
    sample = make_sample();
    repair(sample.dir, sample.highest + 1000);
    base = kit_open(sample.dir);
    assert_true(kit_pair(base, name) > sample.highest + 1000);
    name_of(name, sizeof name, 1);
    kit_expect(kit_take(base, name, 1000, 0, &hold, &err), HF_BUSY, &err);
    kit_close(base);
}

static void repair_in_use(void **state)
{
    struct sample sample = make_sample();
    struct hf_store_base *base = kit_open(sample.dir);
    struct hf_error report = {0};
    char url[600];

    (void)state;
    (void)snprintf(url, sizeof url, "file:%s", sample.dir);
    kit_expect(hf_repair(url, 0, &report), HF_BUSY, &report);
    kit_close(base);
    kit_expect(hf_repair(url, INT64_MAX, &report), HF_INVALID, &report);
}

/* Damage that happens to a store in use is seen there too. */
static void damaged_under_way(void **state)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    kit_world = (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true};
    base = kit_open(dir);
    (void)kit_pair(base, "lock-0");
    flip(kit_slots(dir), 40, 1);
    kit_world.wall_us = 2 * HOUR_US; /* above the promise: it has to look at the header */
    assert_true(refused(kit_take(base, "lock-0", 1000, 0, &hold, &err), &err));
    kit_close(base);
}

/* Somebody raises the promise while the header is read: half of it is new, half is old. That is no
 * damage, whoever comes by. */
static void torn_header(void **state)
{
    struct sample sample = make_sample();
    struct hf_store_base *base;
    struct hf_error err = {0};

    (void)state;
    kit_plan = (struct kit_plan){.ops = KIT_PREAD, .action = KIT_TORN, .at = 1};
    kit_expect(kit_try_open(sample.dir, &base, &err), HF_OK, &err);
    kit_plan = (struct kit_plan){0};
    kit_close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated),     cmocka_unit_test(truncated_and_used),
        cmocka_unit_test(flipped),       cmocka_unit_test(garbage),
        cmocka_unit_test(bad_floor),     cmocka_unit_test(bad_floor_after_reboot),
        cmocka_unit_test(no_floor),      cmocka_unit_test(repair_above),
        cmocka_unit_test(repair_in_use), cmocka_unit_test(damaged_under_way),
        cmocka_unit_test(torn_header),
    };

    return KIT_RUN(tests);
}
