/* deliver_command.c - delivery to a command: a line of JSON in, "ok UID" or "retry UID [DELAY]"
 * out, in any order.
 *
 * The command runs as long as the relay. When it ends, what was under way has failed, and it is
 * started again after a pause that doubles. One that says nothing at all for as long as an answer
 * may take hangs, and is ended. */
#include "cli/outbox/child.h"
#include "cli/outbox/relay.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 256, /* of an answer; a longer line is not one */
    READS_MAX = 16,       /* at once: one that writes without end must not keep us */
    LAST_MS = 100,        /* from the end of its output to its own */
    SAY_MS = 1000,        /* between two messages about odd answers */
    PAUSE_MS = 100,       /* before it is started again, at first */
    PAUSE_MOST_MS = 10000
};

struct delivery {
    bool under_way;
    bool answered; /* and the answer not taken */
    char uid[HF__OUTBOX_UID_MAX + 1];
    int64_t sent_ns;
    struct hf__sender_answer answer;
};

struct hf__sender {
    struct hf__sender_options options;
    struct outbox_child child;
    FILE *lines;  /* writes to unsent: one for all, since to make one costs more than a line */
    char *unsent; /* lines that it has not read yet */
    size_t unsent_len;
    size_t unsent_at;
    char line[LINE_MAX_BYTES];
    size_t line_len;
    bool line_too_long;
    bool deaf; /* it has closed its input */
    int64_t heard_ns;
    int64_t said_ns;
    struct hf__backoff backoff;
    struct delivery deliveries[];
};

static void resolve(struct delivery *delivery, enum hf__outbox_verdict verdict, int64_t asked_ms,
                    const char *why)
{
    delivery->under_way = false;
    delivery->answered = true;
    delivery->answer.verdict = verdict;
    delivery->answer.asked_ms = asked_ms;
    (void)snprintf(delivery->answer.why, sizeof delivery->answer.why, "%s", why);
}

static void resolve_all(struct hf__sender *sender, const char *why)
{
    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].under_way)
            resolve(&sender->deliveries[i], HF__OUTBOX_RETRY, -1, why);
}

/* ---- its life ---- */

/* 0, or errno. */
static int start(struct hf__sender *sender)
{
    int number =
        outbox_child_start(&sender->child, sender->options.command, sender->options.environment);

    sender->heard_ns = hf__now_ns();
    sender->deaf = false;
    return number;
}

static void pause_before_start(struct hf__sender *sender)
{
    uint32_t dice;

    hf__random(&dice, sizeof dice);
    (void)hf__backoff_failed(&sender->backoff, hf__now_ns(), dice);
}

static void forget_unsent(struct hf__sender *sender)
{
    rewind(sender->lines);
    sender->unsent_len = sender->unsent_at = 0;
}

/* It has ended, or is to end. What it was given has failed. */
static void reap(struct hf__sender *sender, const char *why)
{
    char words[HF__SENDER_WHY_SIZE];
    int status;

    if (why != NULL)
        (void)cli_kill_group(sender->child.pid, SIGKILL);
    status = outbox_child_reap(&sender->child);
    forget_unsent(sender);
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
    while (sender->child.pid > 0 && sender->unsent_at < sender->unsent_len) {
        ssize_t done = write(sender->child.in, sender->unsent + sender->unsent_at,
                             sender->unsent_len - sender->unsent_at);

        /* One that has closed its input may answer what it has read; then it hangs. */
        sender->deaf = done < 0 && errno == EPIPE;
        if (done < 0 && errno != EINTR)
            return;
        sender->unsent_at += done > 0 ? (size_t)done : 0;
    }
    if (sender->unsent_at == sender->unsent_len)
        forget_unsent(sender);
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
    for (unsigned i = 0; i < sender->options.deliveries; i++) {
        struct delivery *delivery = &sender->deliveries[i];

        if (!delivery->under_way || strcmp(delivery->uid, said.uid) != 0)
            continue;
        hf__backoff_worked(&sender->backoff);
        sender->heard_ns = hf__now_ns();
        resolve(delivery, said.word == HF__OUTBOX_SAID_OK ? HF__OUTBOX_DELIVERED : HF__OUTBOX_RETRY,
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
    ssize_t got = 0;

    for (int reads = 0; reads < READS_MAX; reads++) {
        got = read(sender->child.out, bytes, sizeof bytes);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return;
        hear_bytes(sender, bytes, got > 0 ? (size_t)got : 0);
        if (got > 0 && (size_t)got < sizeof bytes)
            return; /* that was all, for now */
    }
    if (got != 0)
        return;
    /* It has closed its output. One that lives on is of no use. */
    reap(sender, outbox_child_ended(&sender->child, hf__now_ns() + LAST_MS * HF__NS_PER_MS)
                     ? NULL
                     : "the command closed its output");
}

/* ---- the table ---- */

static void close_command(struct hf__sender *sender)
{
    if (sender == NULL)
        return;
    if (sender->child.pid > 0)
        outbox_child_end(&sender->child);
    (void)fclose(sender->lines);
    free(sender->unsent);
    free(sender);
}

static enum hf_status open_command(const struct hf__sender_options *options,
                                   struct hf__sender **out, struct hf_error *err)
{
    struct hf__sender *sender =
        calloc(1, sizeof *sender + options->deliveries * sizeof sender->deliveries[0]);
    int number;

    *out = NULL;
    if (sender == NULL)
        return hf__nomem(err);
    sender->lines = open_memstream(&sender->unsent, &sender->unsent_len);
    if (sender->lines == NULL) {
        free(sender);
        return hf__nomem(err);
    }
    sender->options = *options;
    sender->backoff = (struct hf__backoff){.first_ns = PAUSE_MS * HF__NS_PER_MS,
                                           .most_ns = PAUSE_MOST_MS * HF__NS_PER_MS};
    for (unsigned i = 0; i < options->deliveries; i++)
        sender->deliveries[i].answer.delivery = i;
    number = start(sender);
    if (number != 0) {
        close_command(sender);
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
    struct delivery *delivery = &sender->deliveries[place];

    outbox_line(sender->lines, message);
    if (fflush(sender->lines) != 0 || ferror(sender->lines) != 0)
        return hf__nomem(err);
    delivery->under_way = true;
    delivery->sent_ns = hf__now_ns();
    (void)snprintf(delivery->uid, sizeof delivery->uid, "%s", message->uid);
    return HF_OK;
}

/* The earliest time at which an answer is overdue; HF_NEVER: nothing is under way. */
static int64_t overdue_ns(const struct hf__sender *sender)
{
    int64_t first_ns = HF_NEVER;

    for (unsigned i = 0; i < sender->options.deliveries; i++) {
        int64_t until_ns = sender->deliveries[i].sent_ns + sender->options.limit_ms * HF__NS_PER_MS;

        if (sender->deliveries[i].under_way && until_ns < first_ns)
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
    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].under_way && sender->deliveries[i].sent_ns + limit_ns <= now_ns)
            resolve(&sender->deliveries[i], HF__OUTBOX_RETRY, -1, why);
    if (sender->child.pid > 0 && sender->heard_ns + limit_ns <= now_ns)
        reap(sender, why);
}

static bool has_answer(const struct hf__sender *sender)
{
    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].answered)
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
    if (sender->child.pid > 0 || !has_work(sender) || hf__now_ns() < sender->backoff.not_before_ns)
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
    if (sender->child.pid == 0 && has_work(sender) && sender->backoff.not_before_ns < until_ns)
        until_ns = sender->backoff.not_before_ns;
    memcpy(all, fds, count * sizeof *fds);
    all[count] =
        (struct pollfd){.fd = sender->child.pid > 0 ? sender->child.out : -1, .events = POLLIN};
    all[count + 1] = (struct pollfd){
        .fd = sender->child.pid > 0 && sender->unsent_len > 0 && !sender->deaf ? sender->child.in
                                                                               : -1,
        .events = POLLOUT};
    (void)hf__poll_until(all, count + 2, until_ns);
    memcpy(fds, all, count * sizeof *fds);
    if (all[count].revents != 0)
        hear(sender);
    flush(sender);
    give_up_overdue(sender);
}

static bool answer_of_command(struct hf__sender *sender, struct hf__sender_answer *out)
{
    for (unsigned i = 0; i < sender->options.deliveries; i++)
        if (sender->deliveries[i].answered) {
            sender->deliveries[i].answered = false;
            *out = sender->deliveries[i].answer;
            return true;
        }
    return false;
}

const struct hf__sender_ops outbox_command_ops = {.abi = HF__SENDER_ABI,
                                                  .open = open_command,
                                                  .close = close_command,
                                                  .send = send_to_command,
                                                  .wait = wait_for_command,
                                                  .answer = answer_of_command};
