/* kill.c - the one place in the program that calls kill(2).
 *
 * A number that is not known any more is 0 or -1 in a variable, and kill(2) takes these for "my
 * group" and "every process there is". No caller here ever means that. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>

enum { INIT_PID = 1 };

int cli_kill(pid_t pid, int number)
{
    if (pid > INIT_PID)
        return kill(pid, number);
    errno = ESRCH;
    return -1;
}

int cli_kill_group(pid_t group, int number)
{
    if (group > INIT_PID)
        return kill(-group, number);
    errno = ESRCH;
    return -1;
}
