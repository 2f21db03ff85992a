/* bench_run.c DIR HOLDFAST - whole processes: what `holdfast run` adds to a command compared to
 * flock(1), and how long it takes to end a hundred processes that do not want to end.
 *
 * As `bench_run swarm` it is such a hundred. */
#include "bench.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS       400
#define SWARM      100
#define RUNTIME_MS 1000 /* how long the swarm may live */

extern char **environ;

static double run_us(char *const argv[])
{
    double start = now_us();
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid)
        exit(1);
    return now_us() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The median of each, taken in turns. */
static void start_up(char *holdfast, char *lock_file)
{
    char *const ours[] = {holdfast, "run", "-n", "bench", "--", "true", NULL};
    char *const theirs[] = {"flock", "-n", lock_file, "true", NULL};
    static double took[2][RUNS];

    for (int i = 0; i < RUNS; i++) {
        took[0][i] = run_us(theirs);
        took[1][i] = run_us(ours);
    }
    qsort(took[0], RUNS, sizeof(double), by_value);
    qsort(took[1], RUNS, sizeof(double), by_value);
    fact("flock -n FILE true, median", took[0][RUNS / 2], "us");
    fact("holdfast run -n NAME -- true, median", took[1][RUNS / 2], "us");
    at_most("holdfast run / flock(1)", took[1][RUNS / 2] / took[0][RUNS / 2], 1.3, "x");
}

/* Double-forked, in sessions of their own, deaf to TERM. */
static int swarm(void)
{
    for (int i = 0; i < SWARM; i++) {
        if (fork() != 0)
            continue;
        if (fork() != 0)
            _exit(0);
        (void)setsid();
        (void)signal(SIGTERM, SIG_IGN);
        for (;;)
            (void)pause();
    }
    (void)signal(SIGTERM, SIG_IGN);
    for (;;)
        (void)pause();
}

static void end_swarm(char *holdfast, char *self)
{
    char *const argv[] = {holdfast, "run", "--grace", "0s", "--max-runtime", "1s", "bench",
                          "--",     self,  "swarm",   NULL};
    double worst = 0;

    for (int i = 0; i < 5; i++) {
        double took = run_us(argv) / 1000 - RUNTIME_MS;

        worst = took > worst ? took : worst;
    }
    at_most("ending a tree of 100, worst of 5", worst, 100, "ms");
}

int main(int argc, char **argv)
{
    char text[4200];

    if (argc == 2 && strcmp(argv[1], "swarm") == 0)
        return swarm();
    if (argc != 3)
        return 1;
    (void)snprintf(text, sizeof text, "file:%s/run", argv[1]);
    (void)setenv("HOLDFAST_STORE", text, 1);
    (void)snprintf(text, sizeof text, "%s/flock", argv[1]);
    start_up(argv[2], text);
    end_swarm(argv[2], argv[0]);
    return 0;
}
