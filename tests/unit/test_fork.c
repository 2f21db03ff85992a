/* test_fork.c - a forked child has nothing of its parent's store: refused, and nothing is
 * touched. */
#include "../support/check.h"
#include "../support/fake_store.h"
#include "base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    struct fake_store *fake;
    struct hf_store *store;
    struct hf_lease *lease;
    char dir[256];
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    check_temp_dir(world->dir, sizeof world->dir);
    world->fake = fake_new(HF_FEATURE_DETACHED);
    world->store = fake_open(world->fake);
    assert_int_equal(hf_acquire(world->store, "job", NULL, &world->lease, NULL), HF_OK);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    hf_close(world->store);
    fake_free(world->fake);
    check_remove_dir(world->dir);
    free(world);
    return 0;
}

static bool see(const struct hf_lock_info *info, void *data)
{
    (void)info;
    (void)data;
    return true;
}

/* Runs check in a child; what it returns, or 128 and a signal. */
static int in_child(struct world *world, int (*check)(struct world *))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(check(world));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define child_check(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("# in the child: %s\n", #condition);                                       \
            return __LINE__ % 100 + 1;                                                             \
        }                                                                                          \
    } while (0)

static int everything_is_refused(struct world *world)
{
    static const char owner[] = "0123456789abcdef0123456789abcdef";
    struct hf_lease *lease;
    struct hf_error err;

    child_check(hf_acquire(world->store, "x", NULL, &lease, &err) == HF_INVALID);
    child_check(lease == NULL && strstr(err.text, "fork") != NULL);
    child_check(hf_adopt(world->store, "x", owner, 1, &lease, &err) == HF_INVALID);
    child_check(hf_list(world->store, "", see, NULL, &err) == HF_INVALID);
    child_check(hf_inspect(world->store, "x", see, NULL, &err) == HF_INVALID);
    child_check(hf_store_life_fd(world->store) == -1);
    child_check(hf_renew(world->lease, 0, &err) == HF_INVALID && err.text[0] != '\0');
    child_check(hf_keep(world->lease, &err) == HF_INVALID);
    child_check(hf_lease_remaining_ms(world->lease) <= 0); /* not ours: do not write */
    child_check(hf_lease_loss(world->lease) != HF_LOSS_NONE);
    child_check(hf_lease_fd(world->lease) == -1);
    child_check(hf_lease_token(world->lease) == 1); /* what does not change may be read */
    child_check(strcmp(hf_lease_name(world->lease), "job") == 0);
    child_check(hf_release(world->lease, &err) == HF_INVALID);
    hf_close(world->store);
    child_check(fake_count(world->fake, FAKE_ACQUIRE) == 1);
    child_check(fake_count(world->fake, FAKE_RELEASE) == 0);
    child_check(fake_count(world->fake, FAKE_RENEW) == 0);
    child_check(fake_call(world->fake, FAKE_CLOSE, 0).forked);
    fake_free(world->fake);
    free(world);
    return 0;
}

/* The store first, then the leases: allowed to a parent, and so to a child. */
static int closed_before_the_lease(struct world *world)
{
    struct hf_error err;

    hf_close(world->store);
    child_check(hf_lease_remaining_ms(world->lease) <= 0);
    child_check(hf_renew(world->lease, 0, &err) == HF_INVALID);
    child_check(hf_keep(world->lease, &err) == HF_INVALID);
    child_check(hf_release(world->lease, &err) == HF_INVALID);
    fake_free(world->fake);
    free(world);
    return 0;
}

static int left_after_the_close(struct world *world)
{
    hf_close(world->store);
    hf_leave(world->lease);
    fake_free(world->fake);
    free(world);
    return 0;
}

/* A child of the child is a stranger just as well. */
static int the_grandchild(struct world *world)
{
    struct hf_lease *lease;

    return hf_acquire(world->store, "x", NULL, &lease, NULL) == HF_INVALID ? 0 : 1;
}

static int has_a_child(struct world *world)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(the_grandchild(world));
    child_check(waitpid(pid, &status, 0) == pid && status == 0);
    return closed_before_the_lease(world);
}

static void a_child_is_refused(void **state)
{
    static int (*const checks[])(struct world *) = {everything_is_refused, closed_before_the_lease,
                                                    left_after_the_close, has_a_child};
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(checks); i++)
        check_row(in_child(world, checks[i]) == 0, i);
    /* The parent's is as good as before. */
    assert_true(hf_lease_remaining_ms(world->lease) > 0);
    assert_int_equal(hf_renew(world->lease, 0, NULL), HF_OK);
    assert_int_equal(hf_release(world->lease, NULL), HF_OK);
    assert_int_equal(fake_count(world->fake, FAKE_CLOSE), 0);
}

/* The same over the embedded store, where parent and child share descriptors: a child that closes
 * and dies frees nothing that its parent holds. */
static void a_childs_close_frees_nothing(void **state)
{
    struct world *world = *state;
    struct hf_store *store;
    struct hf_store *other;
    struct hf_lease *lease;
    struct hf_lease *next;
    char url[300];
    int status;
    pid_t pid;

    assert_int_equal(hf_release(world->lease, NULL), HF_OK);
    (void)snprintf(url, sizeof url, "file:%s/store", world->dir);
    assert_int_equal(hf_open(url, &store, NULL), HF_OK);
    assert_int_equal(hf_acquire(store, "job", NULL, &lease, NULL), HF_OK);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hf_close(store);
        (void)!hf_release(lease, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(hf_open(url, &other, NULL), HF_OK);
    assert_int_equal(hf_acquire(other, "job", NULL, &next, NULL), HF_BUSY);
    assert_int_equal(hf_renew(lease, 0, NULL), HF_OK);
    assert_int_equal(hf_release(lease, NULL), HF_OK);
    assert_int_equal(hf_acquire(other, "job", NULL, &next, NULL), HF_OK);
    assert_int_equal(hf_release(next, NULL), HF_OK);
    hf_close(store);
    hf_close(other);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_store(a_child_is_refused),
        with_store(a_childs_close_frees_nothing),
    };

    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
