/* tool_tree.c - trees of processes that are hard to end.
 *
 *   tool_tree KIND FILE
 *
 * Each process adds its number to FILE as a line, and then stays, ignoring TERM, for two minutes at
 * most. tests/cli/run_trees.t says what the kinds are for. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BRANCHES = 3,
    THREADS = 4,
    STAY_S = 120,
    BOMBS = 20,
    GENERATIONS = 4000,
    MOMENT_US = 100000
};

static int out;

static void note(void)
{
    dprintf(out, "%d\n", (int)getpid());
}

_Noreturn static void stay(void)
{
    (void)alarm(STAY_S);
    (void)signal(SIGTERM, SIG_IGN);
    note();
    for (;;)
        (void)pause();
}

static void branch_out(void)
{
    for (int i = 0; i < BRANCHES; i++) {
        if (fork() == 0) {
            (void)setsid();
            stay();
        }
    }
}

static void *branch_in_thread(void *data)
{
    branch_out();
    (void)pause();
    return data;
}

static void threads(void)
{
    pthread_t thread;

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, branch_in_thread, NULL) != 0)
            _exit(1);
}

/* Closes what it inherited, the descriptor of the crash release too. */
static void close_all(void)
{
    (void)dup2(out, STDIN_FILENO);
    out = STDIN_FILENO;
    (void)close_range(1, ~0u, 0);
    branch_out();
}

static void undumpable(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    branch_out();
}

static void traced(void)
{
    for (int i = 0; i < BRANCHES; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)alarm(STAY_S);
            (void)ptrace(PTRACE_TRACEME, 0, 0, 0);
            (void)raise(SIGSTOP);
            for (;;) /* its tracer may be killed first */
                (void)pause();
        }
        (void)waitpid(pid, NULL, 0);
        dprintf(out, "%d\n", (int)pid);
    }
}

/* The parent sleeps in the kernel until its child ends. */
static void borrowed(void)
{
    for (int i = 0; i < BRANCHES; i++) {
        if (fork() == 0) {
            note();
            if (vfork() == 0) /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
                stay();       /* NOLINT(clang-analyzer-unix.Vfork) */
            _exit(0);
        }
    }
}

static void subreaper(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int i = 0; i < BRANCHES; i++) {
        if (fork() == 0) {
            if (fork() != 0)
                _exit(0);
            stay();
        }
    }
}

/* A bounded number of them, always on the run: each starts its successor and ends. */
static void fleeing(void)
{
    for (int i = 0; i < BOMBS; i++) {
        if (fork() != 0)
            continue;
        (void)signal(SIGTERM, SIG_IGN);
        for (int g = 0; g < GENERATIONS; g++) {
            pid_t pid = fork();

            if (pid > 0)
                _exit(0);
            if (g % 2)
                (void)setsid();
            (void)usleep(500);
        }
        _exit(0);
    }
}

/* Has every branch noted its number, and we ours? */
static bool whole(void)
{
    char text[256] = "";
    int lines = 0;
    ssize_t got = pread(out, text, sizeof text, 0);

    for (ssize_t i = 0; i < got; i++)
        lines += text[i] == '\n';
    return lines == BRANCHES + 1;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512] = "";
    int fd;
    int parent = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strrchr(text, ')') != NULL)
        (void)sscanf(strrchr(text, ')') + 4, "%d", &parent);
    return parent;
}

/* Has the supervisor started the spare watchdog as well? */
static bool both_children(pid_t supervisor)
{
    char path[64], text[128] = "";
    int first, second;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)supervisor,
                   (int)supervisor);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
        return false;
    (void)close(fd);
    return sscanf(text, "%d %d", &first, &second) == 2;
}

/* Against both watchers at once, when they have settled and the tree is whole. */
static void strike(int number)
{
    pid_t guard = getppid();
    pid_t supervisor = parent_of(guard);

    (void)alarm(STAY_S);
    branch_out();
    note();
    while (!whole() || !both_children(supervisor))
        (void)usleep(MOMENT_US);
    (void)usleep(MOMENT_US);
    (void)kill(supervisor, SIGSTOP);
    (void)kill(guard, number);
    (void)kill(supervisor, number);
    for (;;)
        (void)pause();
}

static void kill_both(void)
{
    strike(SIGKILL);
}

static void stop_both(void)
{
    strike(SIGSTOP);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*start)(void);
    } kinds[] = {{"threads", threads}, {"close-all", close_all}, {"undumpable", undumpable},
                 {"traced", traced},   {"borrowed", borrowed},   {"subreaper", subreaper},
                 {"fleeing", fleeing}, {"kill-both", kill_both}, {"stop-both", stop_both}};

    if (argc != 3)
        return 64;
    out = open(argv[2], O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    (void)signal(SIGTERM, SIG_IGN);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].start();
            stay();
        }
    }
    return 64;
}
