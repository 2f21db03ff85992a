/* test_format.c - slot files that are not of this format, or not of this place: one of the format
 * before is converted when nobody uses it, a copy and a file with holes are refused. */
#include "../support/faultkit.h"
#include "core/token.h"
#include "stores/file/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT  "00000000-0000-4000-8000-000000000001"
#define SLOTS "slots-" BOOT
#define OWNER "00112233445566778899aabbccddeeff"
#define TOKEN 1000
#define FLOOR 5000
#define PAGES (1 + ROOTS + 1) /* of the file before; the last was split off */
#define MOVED "moved away"    /* a name whose slot is in that page */

/* As it was in format 1. */
struct slot_1 {
    uint64_t sum;
    uint64_t hash;
    uint64_t token;
    int64_t expires_ns;
    int64_t taken_ns;
    uint64_t client;
    unsigned char owner[16];
    uint64_t head;
    uint64_t tail;
    int64_t reserved_until_ns;
    uint32_t ttl_ms;
    char name[201];
    char label[161];
    char gap[2];
    uint64_t broken;
    char padding[512 - 464];
};
_Static_assert(sizeof(struct slot_1) == 512, "a slot was one block");

struct file_1 {
    char pages[PAGES][PAGE_SIZE];
};

static void put_slot(struct file_1 *file, uint32_t page_no, int index, struct slot_1 slot)
{
    slot.hash = hf__name_hash(slot.name);
    slot.label[0] = 'x';
    slot.head = 3;
    slot.tail = 5; /* two who are dead */
    hf__sum_set(&slot);
    memcpy(file->pages[page_no] + (index + 1) * SLOT_SIZE, &slot, sizeof slot);
}

static uint32_t root_of(const char *name)
{
    return 1 + (uint32_t)(hf__name_hash(name) % ROOTS);
}

static struct slot_1 slot_of(const char *name, uint64_t token)
{
    struct slot_1 slot = {.token = token};

    (void)snprintf(slot.name, sizeof slot.name, "%s", name);
    return slot;
}

/* The name of a lock that a split of its root by bit 0 moves away. */
static void name_that_moves(char out[32])
{
    for (int i = 0;; i++) {
        (void)snprintf(out, 32, MOVED " %d", i);
        if ((hf__name_hash(out) >> ROOT_BITS & 1) != 0)
            return;
    }
}

/* A store of the format before: a lock that is free, two that are held, of which one is detached,
 * and one whose page was split off. */
static void make_old(const char *dir, int64_t detached_until_ns)
{
    struct file_1 *file = calloc(1, sizeof *file);
    struct file_header header = {.magic = {'h', 'o', 'l', 'd', 'f', 'a', 's', 't'},
                                 .version = 1,
                                 .page_size = PAGE_SIZE,
                                 .boot_id = BOOT,
                                 .time_namespace = hf__file_sys_real.time_namespace(),
                                 .base = 1,
                                 .promise = 3600000000};
    struct slot_1 held = slot_of("held", TOKEN + 1);
    struct slot_1 detached = slot_of("detached", TOKEN + 2);
    struct page_head head = {.depth = 1, .floor = FLOOR};
    struct page_head upper = {.born = 1, .depth = 1, .floor = FLOOR};
    char moved[32], path[600];
    int fd;

    assert_non_null(file);
    hf__sum_set(&header);
    memcpy(file->pages[0], &header, sizeof header);
    held.expires_ns = detached.expires_ns = detached_until_ns;
    held.client = 77;
    held.ttl_ms = detached.ttl_ms = 60000;
    assert_true(hf__hex_decode(detached.owner, sizeof detached.owner, OWNER));
    put_slot(file, root_of("free"), 0, slot_of("free", TOKEN));
    put_slot(file, root_of("held"), 1, held);
    put_slot(file, root_of("detached"), 2, detached);
    name_that_moves(moved);
    head.prefix = root_of(moved) - 1;
    head.next[0] = PAGES - 1;
    upper.prefix = head.prefix | 1u << ROOT_BITS;
    hf__sum_set(&head);
    hf__sum_set(&upper);
    memcpy(file->pages[root_of(moved)], &head, sizeof head);
    memcpy(file->pages[PAGES - 1], &upper, sizeof upper);
    put_slot(file, root_of(moved), 6, slot_of(moved, TOKEN - 1)); /* left behind */
    put_slot(file, PAGES - 1, 0, slot_of(moved, TOKEN + 3));
    (void)snprintf(path, sizeof path, "%s/" SLOTS, dir);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, file, sizeof *file), sizeof *file);
    (void)close(fd);
    free(file);
}

static void old_world(void)
{
    kit_world =
        (struct kit_world){.boot_id = BOOT, .wall_fake = true, .wall_us = 1, .no_fsync = true};
}

static void takes_above(struct hf_store_base *base, const char *name, uint64_t last)
{
    uint64_t token = kit_pair(base, name);

    if (token <= last)
        fail_msg("token %llu of %s after %llu", (unsigned long long)token, name,
                 (unsigned long long)last);
}

static void is_converted(void **state)
{
    const char *dir = kit_dir();
    struct kit_hold hold = {
        .name = "detached", .owner = OWNER, .token = TOKEN + 2, .ttl_ms = 60000, .detached = true};
    struct hf_store_base *base;
    struct kit_hold other;
    struct hf_error err = {0};
    char moved[32];

    (void)state;
    old_world();
    make_old(dir, hf__now_ns() + 60 * HF__NS_PER_S);
    name_that_moves(moved);
    base = kit_open(dir);
    takes_above(base, "free", TOKEN);
    takes_above(base, "held", TOKEN + 1); /* its holder is gone: nobody used the store */
    takes_above(base, moved, TOKEN + 3);
    kit_expect(kit_take(base, "detached", 1000, 0, &other, &err), HF_BUSY, &err);
    kit_expect(kit_renew(base, &hold, &err), HF_OK, &err);
    kit_expect(kit_drop(base, &hold, &err), HF_OK, &err);
    takes_above(base, "detached", TOKEN + 2);
    for (int i = 0; i < 100; i++) { /* new names in the page with a floor */
        char name[32];

        (void)snprintf(name, sizeof name, "new %d", i);
        if (root_of(name) == root_of(moved))
            takes_above(base, name, FLOOR);
    }
    kit_close(base);
    base = kit_open(dir); /* and it stays so */
    takes_above(base, moved, TOKEN + 4);
    kit_close(base);
    kit_world = (struct kit_world){0};
}

/* Somebody who uses it, as a program of the format before does. */
static void is_not_converted_in_use(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct hf_error err = {0};
    int user = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    old_world();
    make_old(dir, 0);
    assert_int_equal(flock(user, LOCK_SH), 0);
    kit_expect(kit_try_open(dir, &base, &err), HF_UNSUPPORTED, &err);
    assert_non_null(strstr(err.text, "format 1, ours is 2): end its users first"));
    (void)close(user);
    base = kit_open(dir);
    takes_above(base, "free", TOKEN);
    kit_close(base);
    kit_world = (struct kit_world){0};
}

static void open_and_use(void *data)
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct kit_hold hold;

    if (kit_try_open(data, &base, &err) != HF_OK ||
        kit_take(base, "free", 10000, 20000, &hold, &err) != HF_OK || hold.token <= TOKEN ||
        kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

/* All who come at once after an upgrade: one converts, the others find it done. */
static void by_one_of_many(void **state)
{
    const char *dir = kit_dir();
    pid_t pids[8];

    (void)state;
    old_world();
    make_old(dir, 0);
    for (size_t i = 0; i < 8; i++)
        pids[i] = kit_spawn(open_and_use, (void *)dir);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(kit_wait(pids[i]), 0);
    kit_world = (struct kit_world){0};
}

static void damage_is_not_converted(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct hf_error err = {0};
    int fd;

    (void)state;
    old_world();
    make_old(dir, 0);
    fd = open(kit_slots(dir), O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "?", 1, root_of("free") * PAGE_SIZE + SLOT_SIZE + 100), 1);
    (void)close(fd);
    kit_expect(kit_try_open(dir, &base, &err), HF_CORRUPT, &err);
    kit_world = (struct kit_world){0};
}

/* A hole takes no room on the disk until something is stored in it, and then there may be none. */
static void holes_are_damage(void **state)
{
    const char *dir = kit_fast_dir();
    struct hf_store_base *base;
    struct hf_error err = {0};
    struct stat st;
    char url[600];
    int fd;

    (void)state;
    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_open_on(&kit_mapped_sys, &kit_host, url, HF_NEVER, &base, &err), HF_OK,
               &err);
    if (!hf__file_of(base)->mapped) {
        kit_close(base);
        skip();
    }
    kit_close(base);
    fd = open(kit_slots(dir), O_WRONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, st.st_size + PAGE_SIZE), 0);
    (void)close(fd);
    kit_expect(kit_try_open(dir, &base, &err), HF_CORRUPT, &err);
    assert_non_null(strstr(err.text, "holes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_converted),     cmocka_unit_test(is_not_converted_in_use),
        cmocka_unit_test(by_one_of_many),   cmocka_unit_test(damage_is_not_converted),
        cmocka_unit_test(holes_are_damage),
    };

    return KIT_RUN(tests);
}
