/* tool_once.c - `holdfast once`, in as few lines as a program over holdfast/once.h takes: it reads
 * the same options, runs CMD as a child, and ends it when the lock is lost. What the command and
 * programs in C make of each other is tested with it.
 *
 *   tool_once --store URL once [--NAME VALUE]... KEY -- CMD [ARG]...
 *
 * --per --slack --start-by --retry-after --ttl --wait (ms, s or d, as the command has them)
 * --retries --label --at --tz; --hold for --on-crash hold; --grace is read and not used. Exits as
 * the command does. With TOOL_ONCE_STOP it stops itself before the turn ends, with
 * TOOL_ONCE_OPEN when the store is open. */
#include "base/base.h"

#include <holdfast/once.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 64, EXIT_DOWN = 69, EXIT_HELD = 70 };
enum { EXIT_UNRECORDED = 74, EXIT_BUSY = 75, LOOK_MS = 5 };

static int64_t ms_of(const char *text)
{
    int64_t ms;

    if (!hf__parse_duration_ms(text, &ms)) {
        fprintf(stderr, "tool_once: no duration: %s\n", text);
        exit(EXIT_USAGE);
    }
    return ms;
}

static bool take_option(struct hf_once_options *o, const char *name, const char *value)
{
    if (strcmp(name, "--per") == 0)
        o->per_ms = ms_of(value);
    else if (strcmp(name, "--slack") == 0)
        o->slack_ms = ms_of(value) == 0 ? -1 : ms_of(value);
    else if (strcmp(name, "--start-by") == 0)
        o->start_by_ms = ms_of(value);
    else if (strcmp(name, "--retry-after") == 0)
        o->retry_after_ms = ms_of(value);
    else if (strcmp(name, "--ttl") == 0)
        o->ttl_ms = (uint32_t)ms_of(value);
    else if (strcmp(name, "--wait") == 0)
        o->wait_ms = ms_of(value);
    else if (strcmp(name, "--retries") == 0)
        o->retries = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(name, "--label") == 0)
        o->label = value;
    else if (strcmp(name, "--at") == 0)
        o->at = value;
    else if (strcmp(name, "--tz") == 0)
        o->tz = value;
    else
        return strcmp(name, "--grace") == 0;
    return true;
}

static pid_t start(const struct hf_once *once, const char *key, char **command)
{
    char token[24];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(token, sizeof token, "%llu",
                   (unsigned long long)hf_lease_token(hf_once_lease(once)));
    (void)setenv("HOLDFAST_NAME", key, 1);
    (void)setenv("HOLDFAST_TOKEN", token, 1);
    (void)setenv("HOLDFAST_ONCE_SLOT", hf_once_slot(once), 1);
    execvp(command[0], command);
    _exit(127);
}

/* The exit code of CMD, which does not outlive the lease. */
static int work(const struct hf_once *once, const char *key, char **command)
{
    struct hf_lease *lease = hf_once_lease(once);
    struct pollfd lost = {.fd = hf_lease_fd(lease), .events = POLLIN};
    pid_t pid = start(once, key, command);
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0)
        if (poll(&lost, 1, LOOK_MS) > 0 || hf_lease_remaining_ms(lease) <= 0)
            (void)kill(pid, SIGKILL);
    if (getenv("TOOL_ONCE_STOP") != NULL)
        (void)raise(SIGSTOP);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NO;
}

static int exit_code(enum hf_status status, enum hf_once_outcome outcome)
{
    if (status == HF_BUSY)
        return EXIT_BUSY;
    if (status == HF_INVALID)
        return EXIT_USAGE;
    if (status != HF_OK)
        return outcome == HF_ONCE_DONE ? EXIT_UNRECORDED : EXIT_DOWN;
    if (outcome == HF_ONCE_HELD)
        return EXIT_HELD;
    return outcome == HF_ONCE_DONE ? EXIT_DONE : EXIT_NO;
}

static int work_once(struct hf_store *store, const char *key, const struct hf_once_options *options,
                     char **command)
{
    struct hf_error err;
    struct hf_once *once;
    enum hf_status status = hf_once_open(store, key, options, &once, &err);
    bool ran = false;
    int code;

    while (status == HF_OK && (status = hf_once_begin(once, &err)) == HF_OK &&
           hf_once_outcome(once) == HF_ONCE_RUN) {
        ran = true;
        code = work(once, key, command);
        status = hf_once_end(once, code == 0 ? HF_ONCE_END_SUCCESS : HF_ONCE_END_FAILURE,
                             (uint32_t)code, NULL, 0, &err);
        if (hf_once_outcome(once) == HF_ONCE_OPEN)
            status = HF_OK; /* what could not be put on record is tried again, in line */
    }
    if (status != HF_OK || !ran || hf_once_outcome(once) != HF_ONCE_DONE)
        fprintf(stderr, "tool_once: %s\n", status == HF_OK ? hf_once_text(once) : err.text);
    code = exit_code(status, once != NULL ? hf_once_outcome(once) : HF_ONCE_OPEN);
    hf_once_close(once);
    return code;
}

int main(int argc, char **argv)
{
    struct hf_once_options options = {.size = sizeof options, .wait_ms = -1};
    struct hf_open_options opening = {.size = sizeof opening};
    int64_t began_ns = hf__now_ns();
    struct hf_store *store;
    struct hf_error err;
    int at = 4, code;

    if (argc < 7 || strcmp(argv[1], "--store") != 0 || strcmp(argv[3], "once") != 0)
        return EXIT_USAGE;
    for (; at < argc && argv[at][0] == '-'; at++)
        if (strcmp(argv[at], "--hold") == 0)
            options.hold_crashed = true;
        else if (at + 1 == argc || !take_option(&options, argv[at], argv[at + 1]))
            return EXIT_USAGE;
        else
            at++;
    if (at + 2 >= argc || strcmp(argv[at + 1], "--") != 0)
        return EXIT_USAGE;
    opening.wait_ms = options.wait_ms;
    if (hf_open_waiting(argv[2], &opening, &store, &err) != HF_OK) {
        fprintf(stderr, "tool_once: %s\n", err.text);
        return EXIT_DOWN;
    }
    if (getenv("TOOL_ONCE_OPEN") != NULL)
        (void)raise(SIGSTOP);
    options.ago_ms = (hf__now_ns() - began_ns) / HF__NS_PER_MS;
    code = work_once(store, argv[at], &options, argv + at + 2);
    hf_close(store);
    return code;
}
