/* test_damage_slots.c - a slot file that is not what it was.
 * run: late asan, run: slow */
#include "damage.h"
#include "stores/file/floor.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Is the byte summed up? Words, queues and details are not: they change without a page's lock, and
 * a wrong one may look as good as a right one. */
static bool is_summed(const char *path, off_t at)
{
    struct slot slot;
    struct page_head head;
    off_t block = at / SLOT_SIZE * SLOT_SIZE;
    size_t in = (size_t)(at - block);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(pread(fd, &slot, sizeof slot, block), SLOT_SIZE);
    assert_int_equal(pread(fd, &head, sizeof head, at / PAGE_SIZE * PAGE_SIZE), SLOT_SIZE);
    (void)close(fd);
    if (at < PAGE_SIZE)
        return at < SLOT_SIZE;
    if (at / PAGE_SIZE >= TABLE_FIRST && at / PAGE_SIZE < PAGES_FIRST)
        return false;
    if (block % PAGE_SIZE == 0)
        return head.sum != 0;
    return slot.hash != 0 && slot.sum == hf__slot_sum(&slot) &&
           hf__page_route(&head, (uint32_t)(at / PAGE_SIZE), slot.hash) == at / PAGE_SIZE &&
           ((in >= offsetof(struct slot, hash) && in < offsetof(struct slot, head)) ||
            (in >= offsetof(struct slot, name) && in < offsetof(struct slot, padding)));
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
        bool summed = is_summed(kit_slots(sample.dir), at);

        fresh_copy(sample.dir, dir);
        flip(kit_slots(dir), at, bits);
        if (!use_all(dir) && summed)
            fail_msg("bits %x flipped at %lld, and nobody saw it", (unsigned)bits, (long long)at);
        if (!summed)
            continue;
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
        cmocka_unit_test(truncated),         cmocka_unit_test(truncated_and_used),
        cmocka_unit_test(flipped),           cmocka_unit_test(garbage),
        cmocka_unit_test(damaged_under_way), cmocka_unit_test(torn_header),
    };

    return KIT_RUN(tests);
}
