/* produce.c - `holdfast fence write FILE -- CMD`: publishes only what a command that succeeded
 * has printed. In a pipeline the reader cannot tell a producer that failed from one that is
 * done. */
#include "cli/fence/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

/* Starts the command with its standard output in a pipe; 0, or an exit code after a message. */
static int start(char **command, pid_t *pid, int *from)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    int rc;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        cli_error("cannot make a pipe: %s", strerror(errno));
        return EXIT_HF_INTERNAL;
    }
    rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (rc == 0)
            rc = posix_spawnp(pid, command[0], &actions, NULL, command, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    *from = ends[0];
    if (rc == 0)
        return 0;
    (void)close(ends[0]);
    cli_error("cannot execute \"%s\": %s", command[0], strerror(rc));
    return rc == ENOENT ? EXIT_HF_NOT_FOUND : EXIT_HF_CANNOT_EXEC;
}

/* Everything that can be read, into a file without a name. 0 or an errno. */
static int spool(int from, FILE *to)
{
    char *buf = malloc(CHUNK);
    ssize_t got = 0;
    int rc = buf == NULL ? ENOMEM : 0;

    while (rc == 0 && (got = read(from, buf, CHUNK)) != 0) {
        bool failed = got < 0 ? errno != EINTR : fwrite(buf, 1, (size_t)got, to) != (size_t)got;

        if (failed)
            rc = errno;
    }
    free(buf);
    return rc == 0 && fflush(to) != 0 ? errno : rc;
}

/* Its exit code as a shell would say it, after a message if that is not 0. */
static int end_of(pid_t pid, const char *file, const char *name)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status)) {
        cli_error("%s is unchanged: \"%s\" was ended by signal %d", file, name, WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    if (WEXITSTATUS(status) != 0)
        cli_error("%s is unchanged: \"%s\" exited with %d", file, name, WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

int fence_produce(const char *file, const struct hf_fence_pass *pass, char **command)
{
    FILE *output = tmpfile();
    struct hf_error err;
    pid_t pid;
    int from;
    int exit_code;
    int rc;

    if (output == NULL) {
        cli_error("cannot make a temporary file: %s", strerror(errno));
        return EXIT_HF_UNAVAILABLE;
    }
    exit_code = start(command, &pid, &from);
    if (exit_code == 0) {
        rc = spool(from, output);
        (void)close(from); /* a command that still writes hears of it */
        exit_code = end_of(pid, file, command[0]);
        if (rc != 0) {
            cli_error("%s is unchanged: cannot keep what \"%s\" prints: %s", file, command[0],
                      strerror(rc));
            exit_code = EXIT_HF_UNAVAILABLE;
        }
    }
    if (exit_code == 0) {
        rewind(output);
        if (hf_fence_write_fd(file, pass, fileno(output), &err) != HF_OK)
            exit_code = cli_fail(&err);
    }
    (void)fclose(output);
    return exit_code;
}
