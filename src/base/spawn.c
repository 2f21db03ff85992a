/* spawn.c - clone3(2), which the C library has no function for.
 *
 * The child is a copy, as with fork(2). Borrowing the parent's memory instead would take a stack
 * and a few lines of assembly for each processor, and saves 3 % of a `holdfast run` of nothing. */
#include "base/base.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t hf__spawn_into_cgroup(int cgroup_fd, hf__child_fn *fn, void *data)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP | CLONE_VFORK,
                              .exit_signal = SIGCHLD,
                              .cgroup = (unsigned)cgroup_fd};
    long pid = syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        fn(data);
    return (pid_t)pid;
}
