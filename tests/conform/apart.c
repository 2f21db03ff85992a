/* apart.c - each test in a process of its own, some at once, told in TAP in the order of the suite.
 *
 * One that crashes or hangs fails by itself. And whoever forks has no threads: a client library may
 * start some, which neither a child nor TSan could do anything with. */
#include "conform.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    AT_ONCE = 4,     /* most of a test is waiting */
    TEST_MAX_S = 300 /* a test that takes longer hangs */
};

struct run {
    pid_t pid;
    FILE *said; /* its stdout and stderr */
    int status; /* as waitpid gives it */
    bool over;
};

pid_t fork_child(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return pid;
}

static void start(struct run *run, const struct CMUnitTest *test)
{
    run->said = tmpfile();
    if (run->said == NULL || fflush(stdout) != 0 || (run->pid = fork_child()) < 0) {
        perror("conform");
        exit(1);
    }
    if (run->pid > 0)
        return;
    (void)dup2(fileno(run->said), STDOUT_FILENO);
    (void)dup2(fileno(run->said), STDERR_FILENO);
    (void)setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
    (void)alarm(TEST_MAX_S);
    exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
}

static bool starts_with(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* What cmocka says in TAP about its one test is left out: it is said by tell(). */
static void quote(FILE *said)
{
    char line[1024];

    rewind(said);
    while (fgets(line, sizeof line, said) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || starts_with(line, "1..") || starts_with(line, "ok ") ||
            starts_with(line, "not ok ") || starts_with(line, "# ok ") ||
            starts_with(line, "# not ok "))
            continue;
        printf("%s%s\n", line[0] == '#' ? "" : "# ", line);
    }
}

/* Whether it passed. */
static bool tell(struct run *run, size_t number, const char *name)
{
    bool good = WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;

    printf("%sok %zu - %s\n", good ? "" : "not ", number, name);
    quote(run->said);
    if (WIFSIGNALED(run->status))
        printf("# ended by a signal: %s\n", strsignal(WTERMSIG(run->status)));
    (void)fclose(run->said);
    (void)fflush(stdout);
    return good;
}

static void wait_for_one(struct run *runs, size_t started)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);

    for (size_t i = 0; i < started; i++)
        if (!runs[i].over && runs[i].pid == pid) {
            runs[i].over = true;
            runs[i].status = status;
        }
}

int suite_run(const struct suite *suite)
{
    struct run runs[COUNT(suite->tests)] = {0};
    size_t started = 0;
    size_t told = 0;
    size_t running = 0;
    int failed = 0;

    printf("1..%zu\n", suite->count);
    while (told < suite->count) {
        for (; started < suite->count && running < AT_ONCE; running++, started++)
            start(&runs[started], &suite->tests[started]);
        wait_for_one(runs, started);
        running--;
        for (; told < started && runs[told].over; told++)
            failed += !tell(&runs[told], told + 1, suite->tests[told].name);
    }
    return failed;
}
