/* test_growth.c - many locks: all kept, all found, at a bounded price; and slots used again.
 * run: late asan, run: slow */
#include "../support/faultkit.h"
#include "stores/file/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4

static void name_of(char *out, size_t size, long i)
{
    (void)snprintf(out, size, "growth/%ld", i);
}

static off_t size_of(const char *dir)
{
    struct stat st;

    assert_int_equal(stat(kit_slots(dir), &st), 0);
    return st.st_blocks * 512 > st.st_size ? st.st_blocks * 512 : st.st_size;
}

struct seen {
    unsigned char *marks;
    long count;
    long twice;
    long strange;
};

static bool mark(const struct hf_lock_info *info, void *data)
{
    struct seen *seen = data;
    long i = -1;

    if (sscanf(info->name, "growth/%ld", &i) != 1 || i < 0 || i >= seen->count || !info->held ||
        !info->detached)
        seen->strange++;
    else if (seen->marks[i]++ != 0)
        seen->twice++;
    return true;
}

/* Every lock is listed exactly once. */
static void check_listing(struct hf_store_base *base, long count)
{
    struct hf_query query = {.name = "", .deadline_ns = HF_NEVER};
    struct seen seen = {.marks = calloc(1, (size_t)count), .count = count};
    struct hf_error err = {0};

    assert_non_null(seen.marks);
    kit_expect(base->ops->list(base, &query, mark, &seen, &err), HF_OK, &err);
    assert_int_equal(seen.twice, 0);
    assert_int_equal(seen.strange, 0);
    for (long i = 0; i < count; i++)
        if (seen.marks[i] != 1)
            fail_msg("lock %ld is not listed", i);
    free(seen.marks);
}

static void many_held(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct hf_store_base *other;
    long count = kit_rounds(30000);
    struct kit_hold *holds = calloc((size_t)count, sizeof *holds);
    struct kit_hold hold;
    struct hf_error err = {0};
    char name[40];

    (void)state;
    assert_non_null(holds);
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    for (long i = 0; i < count; i++) {
        name_of(name, sizeof name, i);
        kit_expect(kit_take_detached(base, name, HF_TTL_MAX_MS, &holds[i], &err), HF_OK, &err);
    }
    print_message("# %ld locks, %lld bytes each\n", count, (long long)(size_of(dir) / count));
    assert_true(size_of(dir) / count <= 1024);
    check_listing(base, count);
    other = kit_open(dir); /* one that has yet to find its way */
    for (long i = 0; i < count; i += 97) {
        kit_expect(kit_take(other, holds[i].name, 1000, 0, &hold, &err), HF_BUSY, &err);
        kit_expect(kit_renew(other, &holds[i], &err), HF_OK, &err);
    }
    for (long i = 0; i < count; i++)
        kit_expect(kit_drop(i % 2 == 0 ? base : other, &holds[i], &err), HF_OK, &err);
    for (long i = 0; i < count; i += 101) /* many have lost their slot to others by now */
        assert_true(kit_pair(other, holds[i].name) > holds[i].token);
    kit_close(base);
    kit_close(other);
    free(holds);
}

struct grower {
    const char *dir;
    long from;
    long to;
};

static void grow(void *data)
{
    struct grower *grower = data;
    struct hf_store_base *base = kit_open(grower->dir);
    struct hf_error err = {0};
    char name[40];

    for (long i = grower->from; i < grower->to; i++) {
        struct kit_hold hold;
        struct kit_hold again;

        name_of(name, sizeof name, i);
        if (kit_take_detached(base, name, HF_TTL_MAX_MS, &hold, &err) != HF_OK)
            kit_die("take %s: %s", name, err.text);
        if (kit_take(base, name, 1000, 0, &again, &err) != HF_BUSY)
            kit_die("%s was forgotten", name);
        if (i % 50 == 0 && kit_renew(base, &hold, &err) != HF_OK)
            kit_die("renew %s: %s", name, err.text);
    }
}

static void several_grow(void **state)
{
    struct grower growers[PROCESSES];
    pid_t pids[PROCESSES];
    const char *dir = kit_fast_dir();
    long each = kit_rounds(3000);
    struct hf_store_base *base;
    char name[40];

    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        growers[i] = (struct grower){dir, i * each, (i + 1) * each};
        pids[i] = kit_spawn(grow, &growers[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(kit_wait(pids[i]), 0);
    base = kit_open(dir);
    check_listing(base, PROCESSES * each);
    for (long i = 0; i < PROCESSES * each; i += 7) {
        struct kit_hold hold;
        struct hf_error err = {0};

        name_of(name, sizeof name, i);
        kit_expect(kit_take(base, name, 1000, 0, &hold, &err), HF_BUSY, &err);
    }
    kit_close(base);
}

/* Growers that are killed while they grow leave nothing worse than an unused page. */
static void growers_killed(void **state)
{
    struct kit_rng rng = kit_rng(31);
    const char *dir = kit_fast_dir();
    long next = 0;
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    for (long round = 0; round < kit_rounds(60); round++) {
        struct grower grower = {dir, next, next + 100000};
        pid_t pid = kit_spawn(grow, &grower);

        hf__sleep_ns((int64_t)kit_below(&rng, 8000000));
        (void)kill(pid, SIGKILL);
        (void)kit_wait(pid);
        next += 100000;
    }
    base = kit_open(dir);
    for (long i = 0; i < 2000; i++) {
        char name[40];

        (void)snprintf(name, sizeof name, "after/%ld", i);
        kit_expect(kit_take_detached(base, name, 60000, &hold, &err), HF_OK, &err);
    }
    kit_close(base);
}

/* Short holds of ever new names live on the same few pages. The clock stands still: only what the
 * buckets keep can hold the tokens up. */
static void many_names(void **state)
{
    const char *dir = kit_fast_dir();
    long count = kit_rounds(60000);
    struct hf_store_base *base;
    uint64_t last = 0;
    char name[40];

    (void)state;
    kit_world = (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true};
    base = kit_open(dir);
    for (long i = 0; i < count; i++) {
        name_of(name, sizeof name, i);
        (void)kit_pair(base, name);
        if (i % 1000 == 0) {
            uint64_t token = kit_pair(base, "now and then");

            assert_true(token > last);
            last = token;
        }
    }
    assert_true(size_of(dir) <= (PAGES_FIRST + 16) * PAGE_SIZE);
    kit_close(base);
    kit_world = (struct kit_world){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_held),
        cmocka_unit_test(several_grow),
        cmocka_unit_test(growers_killed),
        cmocka_unit_test(many_names),
    };

    return KIT_RUN(tests);
}
