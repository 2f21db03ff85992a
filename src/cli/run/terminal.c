/* terminal.c - the terminal that controls us, and being stopped by it.
 *
 * With a terminal, CMD stays in our process group, in the foreground or not, and whatever became of
 * stdin and stderr: Ctrl-C, Ctrl-Z, `&`, `fg` and reading /dev/tty then behave as without us. */
#include "cli/run/supervise.h"

#include <fcntl.h>
#include <unistd.h>

/* The foreground group of our controlling terminal; 0 if we have none. */
static pid_t foreground_group(void)
{
    int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    pid_t group = tty >= 0 ? tcgetpgrp(tty) : -1;

    if (tty >= 0)
        (void)close(tty);
    /* A container need not have that file, and may be on a terminal all the same. */
    for (int fd = STDIN_FILENO; group < 0 && fd <= STDERR_FILENO; fd++)
        group = tcgetpgrp(fd);
    return group > 0 ? group : 0;
}

bool run_has_terminal(void)
{
    return foreground_group() > 0;
}

/* The kernel sends TTIN and TTOU to the whole group, but we ignore TTOU, because a message must not
 * stop us. The shell looks at us only: if we did not stop as well, `fg` would not wake CMD. Where
 * nobody could wake us, in an orphaned group, the kernel does not stop us either. */
void run_stop_with_command(int number)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction before;

    if (foreground_group() == getpgrp())
        return; /* `fg` was faster */
    (void)sigaction(number, &by_default, &before);
    (void)raise(number);
    (void)sigaction(number, &before, NULL);
}
