/* child.c - the process of a command that messages are delivered to. */
#include "cli/outbox/child.h"

#include "base/base.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 5,
    TERM_MS = 1000, /* from the end of its input to TERM ... */
    KILL_MS = 3000  /* ... and to KILL */
};

enum { IN, OUT, FAILED, PIPES };

/* In the child. Never returns; on failure writes errno to the last pipe. */
static _Noreturn void become(char **command, char **environment, int pipes[PIPES][2])
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;
    int number;

    (void)sigemptyset(&none);
    (void)sigaction(SIGPIPE, &normal, NULL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(pipes[IN][0], STDIN_FILENO) >= 0 && dup2(pipes[OUT][1], STDOUT_FILENO) >= 0)
        execvpe(command[0], command, environment);
    number = errno;
    (void)!write(pipes[FAILED][1], &number, sizeof number);
    _exit(EXIT_HF_NOT_FOUND);
}

/* All or none; errno says why. */
static bool open_pipes(int pipes[PIPES][2])
{
    int number;

    for (int i = 0; i < PIPES; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) == 0)
            continue;
        number = errno;
        while (i-- > 0) {
            (void)close(pipes[i][0]);
            (void)close(pipes[i][1]);
        }
        errno = number;
        return false;
    }
    return true;
}

int outbox_child_start(struct outbox_child *child, char **command, char **environment)
{
    int pipes[PIPES][2];
    int number = 0;

    if (!open_pipes(pipes))
        return errno;
    child->pid = fork();
    if (child->pid == 0)
        become(command, environment, pipes);
    number = child->pid < 0 ? errno : 0;
    (void)close(pipes[IN][0]);
    (void)close(pipes[OUT][1]);
    (void)close(pipes[FAILED][1]);
    if (child->pid > 0 && read(pipes[FAILED][0], &number, sizeof number) > 0)
        (void)waitpid(child->pid, NULL, 0);
    (void)close(pipes[FAILED][0]);
    child->in = pipes[IN][1];
    child->out = pipes[OUT][0];
    (void)fcntl(child->in, F_SETFL, O_NONBLOCK);
    (void)fcntl(child->out, F_SETFL, O_NONBLOCK);
    if (number != 0) {
        (void)close(child->in);
        (void)close(child->out);
        child->pid = 0;
    }
    return number;
}

bool outbox_child_ended(const struct outbox_child *child, int64_t until_ns)
{
    siginfo_t info = {.si_pid = 0};
    struct pollfd nothing;

    while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0 && hf__now_ns() < until_ns)
        (void)hf__poll_until(&nothing, 0, hf__now_ns() + LOOK_MS * HF__NS_PER_MS);
    return info.si_pid != 0;
}

int outbox_child_reap(struct outbox_child *child)
{
    int status = 0;

    (void)close(child->in);
    (void)close(child->out);
    (void)waitpid(child->pid, &status, 0);
    child->pid = 0;
    return status;
}

void outbox_child_end(struct outbox_child *child)
{
    int64_t began_ns = hf__now_ns();

    (void)close(child->in);
    if (!outbox_child_ended(child, began_ns + TERM_MS * HF__NS_PER_MS))
        (void)cli_kill_group(child->pid, SIGTERM);
    (void)outbox_child_ended(child, began_ns + KILL_MS * HF__NS_PER_MS);
    (void)cli_kill_group(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
    (void)close(child->out);
    child->pid = 0;
}
