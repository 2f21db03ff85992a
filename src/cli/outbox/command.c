/* command.c - delivery to a command: a line of JSON in, "ok UID" or "retry UID [DELAY]" out, in any
 * order.
 *
 * The command runs as long as the relay. When it ends, what was under way has failed, and it is
 * started again after a pause that doubles. One that says nothing at all for as long as an answer
 * may take hangs, and is ended. */
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 256, /* of an answer; more is none */
    END_MS = 3000,        /* from the end of its input to KILL */
    SAY_MS = 1000,        /* odd answers are told of so often */
    PAUSE_MS = 100,       /* before it is started again, at first */
    PAUSE_MOST_MS = 10000
};

struct slot {
    bool under_way;
    bool answered; /* and the answer not taken */
    char uid[HF__OUTBOX_UID_MAX + 1];
    int64_t sent_ns;
    struct hf__sender_answer answer;
};

struct hf__sender {
    struct hf__sender_options options;
    pid_t pid;    /* 0: it does not run */
    int in;       /* what it reads */
    int out;      /* what it writes */
    char *unsent; /* lines that it has not read yet */
    size_t unsent_len;
    size_t unsent_at;
    char line[LINE_MAX_BYTES];
    size_t line_len;
    bool line_too_long;
    int64_t heard_ns;
    int64_t said_ns;
    struct hf__backoff backoff;
    struct slot slots[];
};

static void resolve(struct slot *slot, enum hf__outbox_verdict verdict, int64_t asked_ms,
                    const char *why)
{
    slot->under_way = false;
    slot->answered = true;
    slot->answer.verdict = verdict;
    slot->answer.asked_ms = asked_ms;
    (void)snprintf(slot->answer.why, sizeof slot->answer.why, "%s", why);
}

static void resolve_all(struct hf__sender *sender, const char *why)
{
    for (unsigned i = 0; i < sender->options.slots; i++)
        if (sender->slots[i].under_way)
            resolve(&sender->slots[i], HF__OUTBOX_RETRY, -1, why);
}

/* ---- its life ---- */

/* In the child. Never returns; on failure writes errno to the pipe. */
static _Noreturn void become(const struct hf__sender *sender, int in, int out, int failed)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;
    int number;

    (void)sigemptyset(&none);
    (void)sigaction(SIGPIPE, &normal, NULL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execvpe(sender->options.command[0], sender->options.command, sender->options.environment);
    number = errno;
    (void)!write(failed, &number, sizeof number);
    _exit(EXIT_HF_NOT_FOUND);
}

/* All or none; errno says why. */
static bool open_pipes(int pipes[3][2])
{
    int number;

    for (int i = 0; i < 3; i++) {
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

/* 0, or errno. */
static int start(struct hf__sender *sender)
{
    int pipes[3][2];
    int *in = pipes[0], *out = pipes[1], *failed = pipes[2];
    int number = 0;

    if (!open_pipes(pipes))
        return errno;
    sender->pid = fork();
    if (sender->pid == 0)
        become(sender, in[0], out[1], failed[1]);
    number = sender->pid < 0 ? errno : 0;
    (void)close(in[0]);
    (void)close(out[1]);
    (void)close(failed[1]);
    if (sender->pid > 0 && read(failed[0], &number, sizeof number) > 0)
        (void)waitpid(sender->pid, NULL, 0);
    (void)close(failed[0]);
    sender->in = in[1];
    sender->out = out[0];
    (void)fcntl(sender->in, F_SETFL, O_NONBLOCK);
    (void)fcntl(sender->out, F_SETFL, O_NONBLOCK);
    sender->heard_ns = hf__now_ns();
    if (number != 0) {
        (void)close(sender->in);
        (void)close(sender->out);
        sender->pid = 0;
    }
    return number;
}

static void pause_before_start(struct hf__sender *sender)
{
    uint32_t dice;

    hf__random(&dice, sizeof dice);
    (void)hf__backoff_failed(&sender->backoff, hf__now_ns(), dice);
}

/* It has ended, or is to end. What it was given has failed. */
static void reap(struct hf__sender *sender, const char *why)
{
    char words[HF__SENDER_WHY_SIZE];
    int status = 0;

    (void)close(sender->in);
    (void)close(sender->out);
    if (why != NULL)
        (void)cli_kill_group(sender->pid, SIGKILL);
    (void)waitpid(sender->pid, &status, 0);
    sender->pid = 0;
    sender->unsent_len = sender->unsent_at = 0;
    sender->line_len = 0;
    sender->line_too_long = false;
    if (why == NULL && WIFEXITED(status))
        (void)snprintf(words, sizeof words, "the command exited with %d", WEXITSTATUS(status));
    else if (why == NULL)
        (void)snprintf(words, sizeof words, "the command was ended by signal %d", WTERMSIG(status));
    resolve_all(sender, why != NULL ? why : words);
    sender->options.say(sender->options.data, why != NULL ? why : words);
    pause_before_start(sender);
}

/* ---- what it reads and writes ---- */

static void flush(struct hf__sender *sender)
{
    while (sender->pid > 0 && sender->unsent_at < sender->unsent_len) {
        ssize_t done = write(sender->in, sender->unsent + sender->unsent_at,
                             sender->unsent_len - sender->unsent_at);

        /* One that has closed its input, and lives, hangs. */
        if (done < 0 && errno != EINTR)
            return;
        sender->unsent_at += done > 0 ? (size_t)done : 0;
    }
    sender->unsent_len = sender->unsent_at = 0;
}

static void tell(struct hf__sender *sender, const char *what, const char *line)
{
    char shown[80];
    char words[200];

    if (hf__now_ns() < sender->said_ns)
        return;
    sender->said_ns = hf__now_ns() + SAY_MS * HF__NS_PER_MS;
    hf__copy_printable(shown, sizeof shown, line);
    (void)snprintf(words, sizeof words, "the command said \"%s\": %s", shown, what);
    sender->options.say(sender->options.data, words);
}

static void hear_line(struct hf__sender *sender, const char *line)
{
    struct hf__outbox_said said;

    hf__outbox_read_line(line, &said);
    if (said.word == HF__OUTBOX_SAID_NOTHING) {
        tell(sender, "that is neither \"ok UID\" nor \"retry UID [DELAY]\"", line);
        return;
    }
    for (unsigned i = 0; i < sender->options.slots; i++) {
        struct slot *slot = &sender->slots[i];

        if (!slot->under_way || strcmp(slot->uid, said.uid) != 0)
            continue;
        hf__backoff_worked(&sender->backoff);
        sender->heard_ns = hf__now_ns();
        resolve(slot, said.word == HF__OUTBOX_SAID_OK ? HF__OUTBOX_DELIVERED : HF__OUTBOX_RETRY,
                said.asked_ms, "the command asked for it again");
        return;
    }
    tell(sender, "no such message is under way", line);
}

static void hear_bytes(struct hf__sender *sender, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != '\n') {
            if (sender->line_len + 1 < sizeof sender->line)
                sender->line[sender->line_len++] = bytes[i] != '\0' ? bytes[i] : '?';
            else
                sender->line_too_long = true;
            continue;
        }
        sender->line[sender->line_len] = '\0';
        if (sender->line_too_long)
            tell(sender, "that line is too long", sender->line);
        else
            hear_line(sender, sender->line);
        sender->line_len = 0;
        sender->line_too_long = false;
    }
}

static void hear(struct hf__sender *sender)
{
    char bytes[4096];
    ssize_t got;

    while (sender->pid > 0 && (got = read(sender->out, bytes, sizeof bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return;
        hear_bytes(sender, bytes, (size_t)got);
    }
    /* It has closed its output. One that lives on is of no use. */
    if (sender->pid > 0) {
        struct pollfd nothing;
        int64_t end_ns = hf__now_ns() + 100 * HF__NS_PER_MS;
        siginfo_t info = {.si_pid = 0};

        while (waitid(P_PID, (id_t)sender->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == 0 && hf__now_ns() < end_ns)
            (void)hf__poll_until(&nothing, 0, hf__now_ns() + HF__NS_PER_MS);
        reap(sender, info.si_pid != 0 ? NULL : "the command closed its output");
    }
}

/* ---- the table ---- */

static void close_command(struct hf__sender *sender)
{
    int64_t end_ns = hf__now_ns() + END_MS * HF__NS_PER_MS;
    siginfo_t info = {.si_pid = 0};
    struct pollfd nothing;
    bool terminated = false;

    if (sender == NULL)
        return;
    if (sender->pid > 0) {
        (void)close(sender->in);
        while (waitid(P_PID, (id_t)sender->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == 0 && hf__now_ns() < end_ns) {
            (void)hf__poll_until(&nothing, 0, hf__now_ns() + 5 * HF__NS_PER_MS);
            if (!terminated && hf__now_ns() > end_ns - END_MS * HF__NS_PER_MS * 2 / 3) {
                (void)cli_kill_group(sender->pid, SIGTERM);
                terminated = true;
            }
        }
        (void)cli_kill_group(sender->pid, SIGKILL);
        (void)waitpid(sender->pid, NULL, 0);
        (void)close(sender->out);
    }
    free(sender->unsent);
    free(sender);
}

static enum hf_status open_command(const struct hf__sender_options *options,
                                   struct hf__sender **out, struct hf_error *err)
{
    struct hf__sender *sender =
        calloc(1, sizeof *sender + options->slots * sizeof sender->slots[0]);
    int number;

    *out = NULL;
    if (sender == NULL)
        return hf__nomem(err);
    sender->options = *options;
    sender->backoff = (struct hf__backoff){.first_ns = PAUSE_MS * HF__NS_PER_MS,
                                           .most_ns = PAUSE_MOST_MS * HF__NS_PER_MS};
    for (unsigned i = 0; i < options->slots; i++)
        sender->slots[i].answer.slot = i;
    number = start(sender);
    if (number != 0) {
        free(sender);
        *options->exec_errno = number;
        return hf__fail(err, HF_INVALID, "%s: %s", options->command[0],
                        number == ENOENT || number == ENOTDIR ? "command not found"
                                                              : strerror(number));
    }
    *out = sender;
    return HF_OK;
}

static enum hf_status send_to_command(struct hf__sender *sender, unsigned place,
                                      const struct hf__sender_message *message,
                                      struct hf_error *err)
{
    struct slot *slot = &sender->slots[place];
    size_t len = 0;
    char *line = relay_line(message, &len);
    char *unsent = line != NULL ? realloc(sender->unsent, sender->unsent_len + len) : NULL;

    if (unsent == NULL) {
        free(line);
        return hf__nomem(err);
    }
    memcpy(unsent + sender->unsent_len, line, len);
    free(line);
    sender->unsent = unsent;
    sender->unsent_len += len;
    slot->under_way = true;
    slot->sent_ns = hf__now_ns();
    (void)snprintf(slot->uid, sizeof slot->uid, "%s", message->uid);
    return HF_OK;
}

/* The earliest time at which an answer is overdue; HF_NEVER: nothing is under way. */
static int64_t overdue_ns(const struct hf__sender *sender)
{
    int64_t first_ns = HF_NEVER;

    for (unsigned i = 0; i < sender->options.slots; i++) {
        int64_t until_ns = sender->slots[i].sent_ns + sender->options.limit_ms * HF__NS_PER_MS;

        if (sender->slots[i].under_way && until_ns < first_ns)
            first_ns = until_ns;
    }
    return first_ns;
}

static void give_up_overdue(struct hf__sender *sender)
{
    int64_t limit_ns = sender->options.limit_ms * HF__NS_PER_MS;
    int64_t now_ns = hf__now_ns();
    char limit[32];
    char why[80];

    if (overdue_ns(sender) > now_ns)
        return;
    hf__format_duration(limit, sizeof limit, sender->options.limit_ms);
    (void)snprintf(why, sizeof why, "the command did not answer within %s", limit);
    for (unsigned i = 0; i < sender->options.slots; i++)
        if (sender->slots[i].under_way && sender->slots[i].sent_ns + limit_ns <= now_ns)
            resolve(&sender->slots[i], HF__OUTBOX_RETRY, -1, why);
    if (sender->pid > 0 && sender->heard_ns + limit_ns <= now_ns)
        reap(sender, why);
}

static bool has_answer(const struct hf__sender *sender)
{
    for (unsigned i = 0; i < sender->options.slots; i++)
        if (sender->slots[i].answered)
            return true;
    return false;
}

static bool has_work(const struct hf__sender *sender)
{
    return overdue_ns(sender) != HF_NEVER;
}

/* What was meant for one that has ended was answered by its end: what is unsent now is for the
 * next. */
static void start_if_due(struct hf__sender *sender)
{
    if (sender->pid > 0 || !has_work(sender) || hf__now_ns() < sender->backoff.not_before_ns)
        return;
    if (start(sender) != 0)
        pause_before_start(sender);
}

static void wait_for_command(struct hf__sender *sender, struct pollfd *fds, nfds_t count,
                             int64_t until_ns)
{
    struct pollfd all[HF__SENDER_FDS_MAX + 2];
    int64_t overdue = overdue_ns(sender);

    start_if_due(sender);
    flush(sender);
    if (has_answer(sender))
        until_ns = 0;
    if (overdue < until_ns)
        until_ns = overdue;
    if (sender->pid == 0 && has_work(sender) && sender->backoff.not_before_ns < until_ns)
        until_ns = sender->backoff.not_before_ns;
    memcpy(all, fds, count * sizeof *fds);
    all[count] = (struct pollfd){.fd = sender->pid > 0 ? sender->out : -1, .events = POLLIN};
    all[count + 1] = (struct pollfd){
        .fd = sender->pid > 0 && sender->unsent_len > 0 ? sender->in : -1, .events = POLLOUT};
    (void)hf__poll_until(all, count + 2, until_ns);
    memcpy(fds, all, count * sizeof *fds);
    if (all[count].revents != 0)
        hear(sender);
    flush(sender);
    give_up_overdue(sender);
}

static bool answer_of_command(struct hf__sender *sender, struct hf__sender_answer *out)
{
    for (unsigned i = 0; i < sender->options.slots; i++)
        if (sender->slots[i].answered) {
            sender->slots[i].answered = false;
            *out = sender->slots[i].answer;
            return true;
        }
    return false;
}

const struct hf__sender_ops relay_command_ops = {.abi = HF__SENDER_ABI,
                                                 .open = open_command,
                                                 .close = close_command,
                                                 .send = send_to_command,
                                                 .wait = wait_for_command,
                                                 .answer = answer_of_command};
