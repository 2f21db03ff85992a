/* test_power_loss.c - the power fails at every step of the floor's replacement.
 *
 * A system under the store notes every change of `floor` and `floor.new`. After each step every
 * state that a disk may legally be in is built: changes of the folder since its last fsync made it
 * or not, in their order; what was written to a file since its last fsync is there, lost, cut or
 * garbage. Then the machine boots, its clock back in 1970, and the next token must be above every
 * one that was given before. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#define INODES_MAX  64
#define PENDING_MAX 64
#define STEPS_MAX   512
#define TEXT_MAX    96

struct content {
    char text[TEXT_MAX];
    size_t len;
};

struct inode {
    ino_t number;
    struct content now;
    struct content synced;
    bool ever_synced;
    bool dirty;
};

/* Which inode is behind each name: -1 for none. */
struct folder {
    int floor;
    int fresh; /* floor.new */
};

struct disk {
    struct inode inodes[INODES_MAX];
    int count;
    struct folder durable;
    struct folder pending[PENDING_MAX]; /* after each change since the last fsync of the folder */
    int pending_count;
};

struct step {
    struct disk disk;
    uint64_t given; /* the highest token given before */
};

static struct disk disk;
static struct step steps[STEPS_MAX];
static int step_count;
static uint64_t given;
static bool drop_file_fsync;
static bool drop_dir_fsync;
static int fail_dir_fsync; /* the n-th from now fails */

static void note_step(void)
{
    assert_true(step_count < STEPS_MAX);
    steps[step_count++] = (struct step){disk, given};
}

static struct folder *current(void)
{
    return disk.pending_count > 0 ? &disk.pending[disk.pending_count - 1] : &disk.durable;
}

static void change(struct folder next)
{
    assert_true(disk.pending_count < PENDING_MAX);
    disk.pending[disk.pending_count++] = next;
}

static struct inode *inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    for (int i = disk.count - 1; i >= 0; i--)
        if (disk.inodes[i].number == st.st_ino)
            return &disk.inodes[i];
    return NULL;
}

static int sim_openat(int dir, const char *name, int flags, mode_t mode)
{
    int fd = openat(dir, name, flags, mode);
    struct stat st;

    if (fd < 0 || strcmp(name, "floor.new") != 0)
        return fd;
    if (current()->fresh < 0) {
        struct folder next = *current();

        assert_true(disk.count < INODES_MAX);
        assert_int_equal(fstat(fd, &st), 0);
        disk.inodes[disk.count] = (struct inode){.number = st.st_ino, .dirty = true};
        next.fresh = disk.count++;
        change(next);
    } else if ((flags & O_TRUNC) != 0) {
        disk.inodes[current()->fresh].now.len = 0;
        disk.inodes[current()->fresh].dirty = true;
    }
    note_step();
    return fd;
}

static ssize_t sim_pwrite(int fd, const void *buf, size_t len, off_t at)
{
    ssize_t done = pwrite(fd, buf, len, at);
    struct inode *inode = inode_of(fd);

    if (inode != NULL && done > 0) {
        assert_true(at == 0 && len <= TEXT_MAX);
        memcpy(inode->now.text, buf, len);
        inode->now.len = len;
        inode->dirty = true;
        note_step();
    }
    return done;
}

static int sim_fsync(int fd)
{
    struct inode *inode = inode_of(fd);
    struct stat st;

    if (inode != NULL && !drop_file_fsync) {
        inode->synced = inode->now;
        inode->ever_synced = true;
        inode->dirty = false;
    }
    assert_int_equal(fstat(fd, &st), 0);
    if (S_ISDIR(st.st_mode) && fail_dir_fsync > 0 && --fail_dir_fsync == 0) {
        note_step();
        errno = EIO;
        return -1;
    }
    if (S_ISDIR(st.st_mode) && !drop_dir_fsync) {
        disk.durable = *current();
        disk.pending_count = 0;
    }
    note_step();
    return 0;
}

static int sim_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int result = renameat(from_dir, from, to_dir, to);

    if (result == 0 && strcmp(from, "floor.new") == 0) {
        struct folder next = *current();

        if (next.floor >= 0)
            disk.inodes[next.floor].number = 0; /* free, and may be another file's soon */
        next.floor = next.fresh;
        next.fresh = -1;
        change(next);
        note_step();
    }
    return result;
}

static bool sim_boot_id(char out[37])
{
    return kit_sys.boot_id(out);
}

static const struct hf__file_sys sim = {.pread = pread,
                                        .pwrite = sim_pwrite,
                                        .openat = sim_openat,
                                        .fsync = sim_fsync,
                                        .renameat = sim_renameat,
                                        .boot_id = sim_boot_id,
                                        .time_namespace = NULL};

static struct hf__file_sys with_namespace(void)
{
    struct hf__file_sys sys = sim;

    sys.time_namespace = kit_sys.time_namespace;
    return sys;
}

static struct hf_store_base *open_simulated(const struct hf__file_sys *sys, const char *dir)
{
    struct hf_store_base *base;
    struct hf_error err = {0};
    char url[600];

    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(
        hf__file_open_on(sys, &kit_host, url, kit_host.now_ns() + 5 * HF__NS_PER_S, &base, &err),
        HF_OK, &err);
    return base;
}

/* Takes and gives back at a given wall clock; the grant may fail. */
static void at_clock(struct hf_store_base *base, int64_t wall_us)
{
    struct kit_hold hold;
    struct hf_error err;

    kit_world.wall_us = wall_us;
    if (kit_take(base, "power", 10000, 0, &hold, &err) != HF_OK)
        return;
    assert_true(hold.token > given);
    given = hold.token;
    note_step();
    (void)kit_drop(base, &hold, &err);
    note_step();
}

static void begin(void)
{
    memset(&disk, 0, sizeof disk);
    disk.durable = (struct folder){-1, -1};
    step_count = 0;
    given = 0;
    drop_file_fsync = drop_dir_fsync = false;
    fail_dir_fsync = 0;
    kit_world = (struct kit_world){
        .wall_fake = true, .wall_us = 1, .boot_id = "00000000-0000-4000-8000-000000000001"};
}

/* A life of the store: made, used, raised, refilled, over two boots. */
static void live(const char *dir)
{
    struct hf__file_sys sys = with_namespace();
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
    for (int i = 0; i < step_count && wrong == NULL; i++)
        wrong = lose_power(dir, &steps[i]);
    return wrong;
}

static void tokens_survive(void **state)
{
    const char *wrong;

    (void)state;
    begin();
    live(kit_dir());
    assert_true(step_count > 20);
    wrong = lose_power_everywhere();
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* An fsync of the folder that failed, or a process killed before it: the name is changed for all
 * to see, and may yet be lost. Who finds it so must not build on it. */
static void unfinished_replacement(void **state)
{
    (void)state;
    for (int at = 1; at <= 4; at++) {
        struct hf__file_sys sys = with_namespace();
        const char *dir = kit_dir();
        struct hf_store_base *base;
        const char *wrong;

        begin();
        base = open_simulated(&sys, dir);
        at_clock(base, 1);
        fail_dir_fsync = at;
        for (int i = 1; i < 5; i++)
            at_clock(base, HOUR_US * 5 * i);
        fail_dir_fsync = 0;
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
    drop_file_fsync = true;
    live(kit_dir());
    assert_non_null(lose_power_everywhere());
    begin();
    drop_dir_fsync = true;
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
