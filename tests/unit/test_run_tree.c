/* test_run_tree.c - finding and signalling a tree of processes.
 * run: slow */
#include "../support/check.h"
#include "cli/kill.c"
#include "cli/run/children.c"
#include "cli/run/tree.c"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { DEPTH = 5 };

static struct run_tree tree;

/* Not for ever, in case a test fails and nobody ends us. */
_Noreturn static void stay(void)
{
    (void)alarm(60);
    for (;;)
        (void)pause();
}

/* A chain of DEPTH processes below us; the pid of the first. Ready once the pipe is at its end. */
static pid_t start_chain(void)
{
    int ready[2];
    char byte;
    pid_t first;

    assert_int_equal(pipe(ready), 0);
    first = fork();
    if (first == 0) {
        (void)close(ready[0]);
        for (int i = 1; i < DEPTH; i++) {
            if (fork() != 0) {
                (void)close(ready[1]);
                stay();
            }
        }
        (void)close(ready[1]);
        stay();
    }
    (void)close(ready[1]);
    while (read(ready[0], &byte, 1) > 0)
        continue;
    (void)close(ready[0]);
    return first;
}

/* Orphans come to us, so the chain is gone when we have reaped all of them. */
static void end_chain_of(int count)
{
    for (int i = 0; i < count; i++) {
        int status;

        assert_true(waitpid(-1, &status, 0) > 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void end_chain(void)
{
    end_chain_of(DEPTH);
}

static void both_ways_find_the_same(void **state)
{
    static struct run_tree other;
    pid_t first = start_chain();

    (void)state;
    assert_true(run_tree_find(&tree, getpid(), NULL));
    assert_true(run_tree_find_by_stat(&other, getpid(), NULL));
    assert_int_equal(tree.count, DEPTH);
    assert_int_equal(other.count, DEPTH);
    assert_int_equal(tree.list[0].pid, first);
    for (size_t i = 0; i < DEPTH; i++) {
        size_t same = 0;

        assert_int_equal(tree.list[i].parent, i ? tree.list[i - 1].pid : getpid());
        while (same < DEPTH && (other.list[same].pid != tree.list[i].pid ||
                                other.list[same].parent != tree.list[i].parent))
            same++;
        assert_true(same < DEPTH);
    }
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain();
}

static void *fork_and_stay(void *data)
{
    pid_t *pid = data;

    *pid = start_chain();
    for (;;)
        (void)pause();
    return NULL;
}

static void children_of_every_thread_are_found(void **state)
{
    pthread_t thread;
    pid_t first = 0;

    (void)state;
    tree.count = 0;
    assert_int_equal(pthread_create(&thread, NULL, fork_and_stay, &first), 0);
    for (int i = 0; i < 1000 && tree.count != DEPTH; i++) {
        assert_true(run_tree_find(&tree, getpid(), NULL));
        hf__sleep_ns(10 * HF__NS_PER_MS);
    }
    assert_int_equal(tree.count, DEPTH);
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain();
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

static void foreign_children_are_left_alone(void **state)
{
    struct run_foreign foreign = {.count = 1};

    (void)state;
    foreign.list[0] = start_chain();
    assert_true(run_tree_find(&tree, getpid(), &foreign));
    assert_int_equal(tree.count, 0);
    assert_true(run_tree_find_by_stat(&tree, getpid(), &foreign));
    assert_int_equal(tree.count, 0);

    /* The watchdog itself is left out, what is below it is not. */
    foreign = (struct run_foreign){.watchdog = foreign.list[0]};
    assert_true(run_tree_find(&tree, getpid(), &foreign));
    assert_int_equal(tree.count, DEPTH - 1);
    assert_true(run_tree_find_by_stat(&tree, getpid(), &foreign));
    assert_int_equal(tree.count, DEPTH - 1);

    assert_true(run_tree_find(&tree, getpid(), NULL));
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain();
}

static void a_process_that_is_no_descendant_is_not_signalled(void **state)
{
    struct run_tree stranger = {.root = 1, .count = 1};

    (void)state;
    (void)start_chain();
    assert_true(run_tree_find(&tree, getpid(), NULL));
    /* As if the last one's number had been given to a stranger: its parent is another. */
    stranger.list[0] = (struct run_process){.pid = tree.list[DEPTH - 1].pid, .parent = 1};
    (void)run_tree_signal(&stranger, SIGKILL);
    hf__sleep_ns(20 * HF__NS_PER_MS);
    assert_true(run_tree_find(&tree, getpid(), NULL));
    assert_int_equal(tree.count, DEPTH);
    assert_int_equal(kill(tree.list[DEPTH - 1].pid, 0), 0);
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain();
}

/* No descriptor is left to look with. */
static void what_cannot_be_read_is_not_empty(void **state)
{
    struct rlimit before, few;

    (void)state;
    (void)start_chain();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (rlim_t more = 0; more < 2; more++) { /* not even /proc/PID/task; that, but no more */
        bool known;
        bool known_by_stat;

        few = before;
        few.rlim_cur = (rlim_t)dup(STDIN_FILENO) + more;
        (void)close((int)(few.rlim_cur - more));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        known = run_tree_find(&tree, getpid(), NULL);
        known_by_stat = run_tree_find_by_stat(&tree, getpid(), NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        check_row(!known && !known_by_stat, more);
    }
    assert_true(run_tree_find(&tree, getpid(), NULL));
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain();
}

/* In a PID namespace with the /proc of the one above it. Exits with the number of what is wrong. */
_Noreturn static void look_from_inside(void)
{
    pid_t first;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    first = start_chain();
    if (run_tree_find(&tree, getpid(), NULL) || tree.count != 0)
        _exit(1);
    if (run_tree_find_by_stat(&tree, getpid(), NULL) || tree.count != 0)
        _exit(2);
    for (int left = DEPTH; left > 0; left--) {
        run_children_find(&tree, NULL, first);
        if (tree.count != 1 || tree.list[0].parent != getpid())
            _exit(3);
        (void)run_tree_signal(&tree, SIGKILL);
        if (waitpid(tree.list[0].pid, NULL, 0) != tree.list[0].pid)
            _exit(4);
    }
    run_children_find(&tree, NULL, first);
    _exit(tree.count == 0 ? 0 : 5);
}

static void another_namespaces_proc_is_not_believed(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        pid_t inside;

        if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
            _exit(77);
        inside = fork();
        if (inside == 0)
            look_from_inside();
        _exit(waitpid(inside, &status, 0) == inside && WIFEXITED(status) ? WEXITSTATUS(status) : 9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Also beside children from before, and whatever numbers they have. */
static void children_are_found_without_proc(void **state)
{
    struct run_foreign foreign = {.count = 1};
    pid_t first;

    (void)state;
    foreign.list[0] = start_chain();
    first = start_chain();
    run_children_find(&tree, &foreign, first);
    assert_int_equal(tree.count, 1);
    assert_int_equal(tree.list[0].pid, first);
    run_children_find(&tree, &foreign, 0);
    assert_int_equal(tree.count, 1);
    run_children_find(&tree, NULL, 0);
    assert_int_equal(tree.count, 2);
    assert_true(run_tree_find(&tree, getpid(), NULL));
    (void)run_tree_signal(&tree, SIGKILL);
    end_chain_of(2 * DEPTH);
}

static void parents_are_read_past_odd_names(void **state)
{
    char before[16];
    char text[64];

    (void)state;
    (void)prctl(PR_GET_NAME, before, 0, 0, 0);
    (void)prctl(PR_SET_NAME, ") R 1 (x", 0, 0, 0);
    assert_int_equal(parent_of(getpid()), getppid());
    run_tree_describe(text, sizeof text, getpid());
    assert_non_null(strstr(text, "() R 1 (x)"));
    (void)prctl(PR_SET_NAME, before, 0, 0, 0);
    assert_int_equal(parent_of(0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_find_the_same),
        cmocka_unit_test(children_of_every_thread_are_found),
        cmocka_unit_test(foreign_children_are_left_alone),
        cmocka_unit_test(a_process_that_is_no_descendant_is_not_signalled),
        cmocka_unit_test(what_cannot_be_read_is_not_empty),
        cmocka_unit_test(another_namespaces_proc_is_not_believed),
        cmocka_unit_test(children_are_found_without_proc),
        cmocka_unit_test(parents_are_read_past_odd_names),
    };

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return cmocka_run_group_tests_name("run_tree", tests, NULL, NULL);
}
