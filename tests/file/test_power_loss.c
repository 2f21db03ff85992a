/* test_power_loss.c - the power fails at every step of the floor's replacement.
 *
 * After each step every state that a disk may legally be in is built. Then the machine boots, its
 * clock back in 1970, and the next token must be above every one that was given before.
 * run: slow */
#include "power.h"
#include "stores/file/floor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes and gives back at a given wall clock; the grant may fail. */
static void at_clock(struct hf_store_base *base, int64_t wall_us)
{
    struct kit_hold hold;
    struct hf_error err;

    kit_world.wall_us = wall_us;
    if (kit_take(base, "power", 10000, 0, &hold, &err) != HF_OK)
        return;
    assert_true(hold.token > power.given);
    power.given = hold.token;
    note_step();
    (void)kit_drop(base, &hold, &err);
    note_step();
}

/* A life of the store: made, used, raised, refilled, over two boots. */
static void live(const char *dir)
{
    struct hf__file_sys sys = noting_sys();
    struct hf_store_base *base = open_simulated(&sys, dir);

    at_clock(base, 1);
    at_clock(base, HOUR_US * 3 / 4); /* refills at the release */
    at_clock(base, HOUR_US * 5);     /* raises before the grant */
    at_clock(base, HOUR_US * 5 + 1);
    kit_close(base);
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
    base = open_simulated(&sys, dir);
    at_clock(base, HOUR_US * 9);
    kit_close(base);
}

static void put(const char *dir, const char *name, const struct content *content)
{
    char path[600];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)unlink(path);
    if (content == NULL)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content->text, content->len), (ssize_t)content->len);
    (void)close(fd);
}

/* The variant-th content a file may have after the loss; false when there are no more. */
static bool content_after(const struct inode *inode, int variant, struct content *out)
{
    *out = inode->now;
    if (!inode->dirty)
        return variant == 0;
    switch (variant) {
    case 0:
        *out = inode->ever_synced ? inode->synced : (struct content){{0}, 0};
        return true;
    case 1:
        return true; /* all of it made it */
    case 2:
        out->len /= 2;
        return true;
    case 3:
        memset(out->text, 0, sizeof out->text);
        return true;
    case 4:
        memset(out->text, 'x', sizeof out->text);
        return true;
    default:
        return false;
    }
}

/* Boots with this on disk. Returns what is wrong, or NULL. */
static const char *boot(const char *dir, const struct content *floor, const struct content *fresh,
                        bool old_slots, uint64_t must_exceed)
{
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};
    const char *wrong = NULL;
    char path[600];

    kit_remove(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    put(dir, "floor", floor);
    put(dir, "floor.new", fresh);
    if (old_slots) {
        const struct content garbage = {"not what it was", 15};

        (void)snprintf(path, sizeof path, "slots-%s", "00000000-0000-4000-8000-000000000002");
        put(dir, path, &garbage);
    }
    kit_world.boot_id = "00000000-0000-4000-8000-000000000003";
    kit_world.wall_us = 1;
    if (kit_try_open(dir, &base, &err) != HF_OK)
        return must_exceed > 0 || floor != NULL ? "the store is refused" : NULL;
    if (kit_take(base, "power", 1000, 0, &hold, &err) != HF_OK)
        wrong = "no token is given";
    else if (hold.token <= must_exceed)
        wrong = "a token went back";
    kit_close(base);
    return wrong;
}

/* Every state the disk may be in after a step. Returns the first wrong, or NULL. */
static const char *lose_power(const char *dir, const struct step *step)
{
    struct content floor;
    struct content fresh;
    const char *wrong;

    for (int made = 0; made <= step->disk.pending_count; made++) {
        struct folder names = made > 0 ? step->disk.pending[made - 1] : step->disk.durable;

        for (int i = 0;
             names.floor < 0 ? i == 0 : content_after(&step->disk.inodes[names.floor], i, &floor);
             i++)
            for (int j = 0;
                 names.fresh < 0 ? j == 0
                                 : content_after(&step->disk.inodes[names.fresh], j, &fresh);
                 j++) {
                wrong = boot(dir, names.floor < 0 ? NULL : &floor, names.fresh < 0 ? NULL : &fresh,
                             step->given > 0, step->given);
                if (wrong != NULL)
                    return wrong;
            }
    }
    return NULL;
}

/* Loses power after every step of what was lived. */
static const char *lose_power_everywhere(void)
{
    const char *dir = kit_dir();
    const char *wrong = NULL;

    kit_world.no_fsync = true;
    for (int i = 0; i < power.step_count && wrong == NULL; i++)
        wrong = lose_power(dir, &power.steps[i]);
    return wrong;
}

static void tokens_survive(void **state)
{
    const char *wrong;

    (void)state;
    begin();
    live(kit_dir());
    assert_true(power.step_count > 20);
    wrong = lose_power_everywhere();
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* An fsync of the folder that failed, or a process killed before it: the name is changed for all
 * to see, and may yet be lost. A process that finds it must not build on it. */
static void unfinished_replacement(void **state)
{
    (void)state;
    for (int at = 1; at <= 4; at++) {
        struct hf__file_sys sys = noting_sys();
        const char *dir = kit_dir();
        struct hf_store_base *base;
        const char *wrong;

        begin();
        base = open_simulated(&sys, dir);
        at_clock(base, 1);
        power.fail_dir_fsync = at;
        for (int i = 1; i < 5; i++)
            at_clock(base, HOUR_US * 5 * i);
        power.fail_dir_fsync = 0;
        kit_close(base);
        base = open_simulated(&sys, dir); /* another process, which knows nothing of it */
        at_clock(base, HOUR_US * 20 + 10);
        at_clock(base, HOUR_US * 20 + HOUR_US * 3 / 4);
        kit_close(base);
        wrong = lose_power_everywhere();
        if (wrong != NULL)
            fail_msg("fsync %d of the folder fails: %s", at, wrong);
    }
}

/* The test itself can fail: without either fsync it finds what is wrong. */
static void without_fsync(void **state)
{
    (void)state;
    begin();
    power.drop_file_fsync = true;
    live(kit_dir());
    assert_non_null(lose_power_everywhere());
    begin();
    power.drop_dir_fsync = true;
    live(kit_dir());
    assert_non_null(lose_power_everywhere());
}

static ino_t synced_dirs[256];
static int synced_count;

static int watch_fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && synced_count < 256)
        synced_dirs[synced_count++] = st.st_ino;
    return 0;
}

/* A folder that is lost with the power takes the floor with it: its own name must be safe before
 * the first token is given. */
static void new_folder(void **state)
{
    const char *top = kit_dir();
    struct hf__file_sys sys = kit_sys;
    struct hf_store_base *base;
    char dir[600];
    struct stat st;

    (void)state;
    begin();
    sys.fsync = watch_fsync;
    (void)snprintf(dir, sizeof dir, "%s/made/by/us", top);
    base = open_simulated(&sys, dir);
    kit_close(base);
    for (const char *sub = ""; sub != NULL;
         sub = strcmp(sub, "") == 0 ? "/made" : (strcmp(sub, "/made") == 0 ? "/made/by" : NULL)) {
        bool found = false;

        (void)snprintf(dir, sizeof dir, "%s%s", top, sub);
        assert_int_equal(stat(dir, &st), 0);
        for (int i = 0; i < synced_count; i++)
            found = found || synced_dirs[i] == st.st_ino;
        if (!found)
            fail_msg("%s was changed and never synced", dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_survive), cmocka_unit_test(unfinished_replacement),
        cmocka_unit_test(without_fsync), cmocka_unit_test(new_folder)};

    return KIT_RUN(tests);
}
