/* test_io_errors.c - the N-th call to the system fails, for all N: a clear status, nothing leaked,
 * no token that goes back, and a store that works when the fault is over. */
#include "../support/faultkit.h"
#include "stores/file/slot.h"
#include "stores/file/floor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CROWD 8

struct scene {
    const char *dir;
    struct hf_store_base *base;
    struct kit_hold held[CROWD]; /* token 0: not held */
    char names[CROWD][24];
    uint64_t last[CROWD];
};

struct scenario {
    const char *name;
    bool fresh;
    void (*prepare)(struct scene *scene);
    enum hf_status (*act)(struct scene *scene, struct hf_error *err);
};

/* A system whose unsure_at-th change of a word is done and not confirmed, and the read after it
 * fails. */
static long unsure_at;
static bool blind;

static ssize_t unsure_pwrite(int fd, const void *buf, size_t len, off_t at)
{
    ssize_t done = pwrite(fd, buf, len, at);
    bool word = len == sizeof(struct hf__pair) && at % SLOT_SIZE == 0;

    if (!word || unsure_at == 0 || --unsure_at > 0)
        return done;
    blind = true;
    errno = EIO;
    return -1;
}

static ssize_t unsure_pread(int fd, void *buf, size_t len, off_t at)
{
    if (!blind)
        return pread(fd, buf, len, at);
    blind = false;
    errno = EIO;
    return -1;
}

static struct hf_store_base *open_unsure(const char *dir)
{
    static struct hf__file_sys sys;
    struct hf_store_base *base = NULL;
    struct hf_error err = {0};
    char url[600];

    sys = kit_sys;
    sys.pwrite = unsure_pwrite;
    sys.pread = unsure_pread;
    kit_world = (struct kit_world){.no_fsync = true};
    (void)snprintf(url, sizeof url, "file:%s", dir);
    kit_expect(hf__file_open_on(&sys, &kit_host, url, HF_NEVER, &base, &err), HF_OK, &err);
    return base;
}

static void choose_names(struct scene *scene)
{
    int found = 0;

    for (int i = 0; found < CROWD; i++) {
        (void)snprintf(scene->names[found], sizeof scene->names[found], "crowd-%d", i);
        if (hf__name_hash(scene->names[found]) % ROOTS == 0)
            found++;
    }
}

static void take_detached(struct scene *scene, int i)
{
    struct hf_error err = {0};

    kit_expect(kit_take_detached(scene->base, scene->names[i], 60000, &scene->held[i], &err), HF_OK,
               &err);
    scene->last[i] = scene->held[i].token;
}

static enum hf_status act_open(struct scene *scene, struct hf_error *err)
{
    return kit_try_open(scene->dir, &scene->base, err);
}

static enum hf_status act_acquire(struct scene *scene, struct hf_error *err)
{
    enum hf_status status = kit_take(scene->base, scene->names[0], 60000, 0, &scene->held[0], err);

    if (status == HF_OK)
        scene->last[0] = scene->held[0].token;
    else
        memset(&scene->held[0], 0, sizeof scene->held[0]);
    return status;
}

static void prepare_held(struct scene *scene)
{
    take_detached(scene, 0);
}

static enum hf_status act_renew(struct scene *scene, struct hf_error *err)
{
    return kit_renew(scene->base, &scene->held[0], err);
}

static enum hf_status act_release(struct scene *scene, struct hf_error *err)
{
    return kit_drop(scene->base, &scene->held[0], err);
}

/* Waiting that comes to nothing is the good end here. */
static enum hf_status act_wait(struct scene *scene, struct hf_error *err)
{
    struct kit_hold hold;
    enum hf_status status = kit_take(scene->base, scene->names[0], 1000, 5, &hold, err);

    return status == HF_BUSY ? HF_OK : status;
}

static enum hf_status act_list(struct scene *scene, struct hf_error *err)
{
    (void)err;
    (void)kit_waiters(scene->base, scene->names[0]);
    return HF_OK;
}

static void prepare_crowd(struct scene *scene)
{
    for (int i = 1; i < CROWD; i++)
        take_detached(scene, i);
}

static void prepare_idle(struct scene *scene)
{
    for (int i = 1; i < CROWD; i++)
        for (int times = 0; times <= i; times++)
            scene->last[i] = kit_pair(scene->base, scene->names[i]);
}

static void prepare_raise(struct scene *scene)
{
    scene->last[0] = kit_pair(scene->base, scene->names[0]);
    kit_world.wall_us = 3 * HOUR_US;
}

static void prepare_refill(struct scene *scene)
{
    kit_world.wall_us = HOUR_US * 3 / 4;
    take_detached(scene, 0);
}

static void prepare_reboot(struct scene *scene)
{
    scene->last[0] = kit_pair(scene->base, scene->names[0]);
    kit_close(scene->base);
    scene->base = NULL;
    kit_world.boot_id = "00000000-0000-4000-8000-000000000002";
}

static const struct scenario scenarios[] = {
    {"create", true, NULL, act_open},
    {"reboot", false, prepare_reboot, act_open},
    {"acquire", false, NULL, act_acquire},
    {"renew", false, prepare_held, act_renew},
    {"release", false, prepare_held, act_release},
    {"wait", false, prepare_held, act_wait},
    {"list", false, prepare_held, act_list},
    {"split", false, prepare_crowd, act_acquire},
    {"reuse", false, prepare_idle, act_acquire},
    {"raise", false, prepare_raise, act_acquire},
    {"refill", false, prepare_refill, act_release},
};

/* Everything works again, and nothing went back. */
static void check(struct scene *scene)
{
    struct hf_error err = {0};

    kit_world.wall_us = 1;
    if (scene->base == NULL)
        scene->base = kit_open(scene->dir);
    for (int i = 0; i < CROWD; i++) {
        uint64_t token;

        if (scene->held[i].token != 0) { /* held, unless a release took effect */
            enum hf_status status = kit_drop(scene->base, &scene->held[i], &err);

            if (status != HF_LOST)
                kit_expect(status, HF_OK, &err);
        }
        token = kit_pair(scene->base, scene->names[i]);
        if (token <= scene->last[i])
            fail_msg("token %llu after %llu", (unsigned long long)token,
                     (unsigned long long)scene->last[i]);
    }
}

/* Returns false when the scenario makes fewer calls than that. */
static bool run_once(const struct scenario *scenario, struct kit_plan plan)
{
    struct scene scene = {.dir = kit_dir()};
    struct hf_error err = {0};
    enum hf_status status;
    bool met;
    long fds;

    kit_plan = (struct kit_plan){0};
    kit_world = (struct kit_world){.wall_fake = true, .wall_us = 1, .no_fsync = true};
    choose_names(&scene);
    fds = kit_open_fds();
    if (!scenario->fresh)
        scene.base = kit_open(scene.dir);
    if (scenario->prepare != NULL)
        scenario->prepare(&scene);
    kit_plan = plan;
    status = scenario->act(&scene, &err);
    met = kit_plan.seen >= plan.at;
    kit_plan = (struct kit_plan){0};
    if (status != HF_OK) {
        if (!met || (status != HF_UNREACHABLE && status != HF_UNKNOWN && status != HF_DENIED) ||
            strlen(err.text) == 0)
            fail_msg("%s, call %ld: %s: %s", scenario->name, plan.at, hf_status_name(status),
                     err.text);
        assert_null(strstr(err.text, "Success"));
    }
    check(&scene);
    kit_close(scene.base);
    assert_int_equal(kit_open_fds(), fds);
    kit_remove(scene.dir);
    return met;
}

static void every_call(struct kit_plan plan)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        for (plan.at = 1; run_once(&scenarios[i], plan);)
            plan.at++;
        assert_true(plan.at > 1 || plan.ops != KIT_ALL);
    }
}

static void io_error(void **state)
{
    (void)state;
    every_call((struct kit_plan){.ops = KIT_ALL, .action = KIT_FAIL, .error = EIO});
}

static void no_space(void **state)
{
    (void)state;
    every_call((struct kit_plan){.ops = KIT_CHANGES, .action = KIT_FAIL, .error = ENOSPC});
}

/* From the N-th call on nothing works any more. */
static void io_error_from_here_on(void **state)
{
    (void)state;
    every_call(
        (struct kit_plan){.ops = KIT_ALL, .action = KIT_FAIL, .error = EIO, .lasting = true});
}

/* It took effect, and the system says it did not. */
static void false_alarm(void **state)
{
    (void)state;
    every_call((struct kit_plan){
        .ops = KIT_PWRITE | KIT_FSYNC | KIT_RENAME, .action = KIT_FAIL_AFTER, .error = EIO});
}

static void short_write(void **state)
{
    (void)state;
    every_call((struct kit_plan){.ops = KIT_PWRITE, .action = KIT_SHORT});
}

/* Two waiters, and the write that puts the first into the line fails: it must not take away the
 * sign of life of the one who draws the same ticket next. */
static void failed_draw(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base;
    struct kit_hold hold;
    struct hf_error err = {0};

    (void)state;
    kit_world = (struct kit_world){.no_fsync = true};
    base = kit_open(dir);
    kit_expect(kit_take(base, "job", 60000, 0, &hold, &err), HF_OK, &err);
    kit_plan = (struct kit_plan){.ops = KIT_PWRITE, .action = KIT_FAIL, .at = 1, .error = EIO};
    kit_expect(kit_take(base, "job", 60000, 50, &hold, &err), HF_UNREACHABLE, &err);
    kit_plan = (struct kit_plan){0};
    assert_int_equal(kit_count(dir, "queue", ""), 0);
    kit_close(base);
}

/* The write that takes the lock is not answered and cannot be checked: nobody may be kept out for
 * the ttl by a lock that nobody has. */
static void unknown_is_given_back(struct hf_store_base *base, const char *dir, long at)
{
    struct hf_store_base *other = kit_open(dir);
    struct kit_hold hold;
    struct hf_error err = {0};

    unsure_at = at;
    kit_expect(kit_take(base, "job", 60000, 2000, &hold, &err), HF_UNKNOWN, &err);
    unsure_at = 0;
    kit_expect(kit_take(other, "job", 60000, 0, &hold, &err), HF_OK, &err);
    kit_expect(kit_drop(other, &hold, &err), HF_OK, &err);
    kit_close(other);
}

static void unknown_at_once(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base = open_unsure(dir);

    (void)state;
    unknown_is_given_back(base, dir, 3); /* the first two gave it its slot */
    unknown_is_given_back(base, dir, 1);
    kit_close(base);
    assert_int_equal(kit_count(dir, "queue", ""), 0);
}

static void let_go(void *data)
{
    struct hf_error err = {0};
    struct hf_store_base *base = kit_open(data);
    struct kit_hold hold;

    if (kit_take(base, "job", 60000, 0, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    (void)raise(SIGSTOP);
    while (kit_waiters(base, "job") == 0)
        hf__sleep_ns(HF__NS_PER_MS);
    if (kit_drop(base, &hold, &err) != HF_OK)
        kit_die("%s", err.text);
    kit_close(base);
}

/* The second change of the word takes the lock; the first tells its holder that we wait. */
static void unknown_after_a_wait(void **state)
{
    const char *dir = kit_dir();
    struct hf_store_base *base = open_unsure(dir);
    pid_t pid = kit_spawn(let_go, (void *)dir);

    (void)state;
    kit_wait_stopped(pid);
    assert_int_equal(kill(pid, SIGCONT), 0);
    unknown_is_given_back(base, dir, 2);
    assert_int_equal(kit_wait(pid), 0);
    kit_close(base);
    assert_int_equal(kit_count(dir, "queue", ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(io_error),
        cmocka_unit_test(no_space),
        cmocka_unit_test(io_error_from_here_on),
        cmocka_unit_test(false_alarm),
        cmocka_unit_test(short_write),
        cmocka_unit_test(failed_draw),
        cmocka_unit_test(unknown_at_once),
        cmocka_unit_test(unknown_after_a_wait),
    };

    return KIT_RUN(tests);
}
