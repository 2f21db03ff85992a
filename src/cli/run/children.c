/* children.c - our own children, where /proc does not tell.
 *
 * waitid(2) says of any pid whether it is a child of ours, and a child keeps its pid until we reap
 * it: no other process can be meant. Whoever is deeper in the tree becomes our child when those
 * above it are gone, because we are a subreaper. So it takes a round per generation. */
#include "cli/run/run.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_PID = 2,
    LAST_PID = 4 * 1024 * 1024, /* PID_MAX_LIMIT of the kernel; asking for all takes a second */
    RANGE_MAX = 64 * 1024       /* asked for, if we cannot tell which numbers are in use */
};

static bool is_child(pid_t pid)
{
    siginfo_t info;

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Numbers are given out in turn: the latest is that of a process which we start now. */
static pid_t latest_number(pid_t first)
{
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return first + RANGE_MAX;
    (void)waitpid(pid, NULL, 0);
    return pid;
}

static void ask(struct run_tree *tree, const struct run_foreign *foreign, pid_t from, pid_t to)
{
    for (pid_t pid = from; pid <= to; pid++) {
        if (is_child(pid))
            run_tree_add(tree, foreign, pid, tree->root);
    }
}

void run_children_find(struct run_tree *tree, const struct run_foreign *foreign, pid_t first)
{
    pid_t last;

    tree->root = getpid();
    tree->count = 0;
    if (first < FIRST_PID) {
        ask(tree, foreign, FIRST_PID, LAST_PID);
        return;
    }
    last = latest_number(first);
    ask(tree, foreign, first, last >= first ? last : LAST_PID);
    if (last < first)
        ask(tree, foreign, FIRST_PID, last);
}
