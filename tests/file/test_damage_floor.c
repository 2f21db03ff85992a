/* test_damage_floor.c - a floor that is not what it was, and a repair that raises it. */
#include "damage.h"
#include "stores/file/floor.h"

#include <holdfast/repair.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* "Tokens from now on are above `above`", even if there was nothing else to repair. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_floor),     cmocka_unit_test(bad_floor_after_reboot),
        cmocka_unit_test(no_floor),      cmocka_unit_test(repair_above),
        cmocka_unit_test(repair_in_use),
    };

    return KIT_RUN(tests);
}
