/* cmd_break.c - holdfast break: somebody's hold of a lock is revoked.
 *
 * The hold is named by its token, so that nobody breaks what has changed hands meanwhile: a script
 * has to give it, a person is shown who holds the lock and asked. */
#include "cli/cli.h"
#include "cli/say/show.h"

#include "base/base.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SHOWN = 60, LEFT_SIZE = 32 };

/* What was asked for, and what was found. */
struct breaking {
    const char *name;
    uint64_t token;
    bool token_given;
    bool now;
    bool yes;
    const char *reason;
    struct cli_lock lock; /* the present holder; not held: nobody */
    bool found;
};

static int break_main(const struct cli_context *context, int argc, char **argv);
static int break_in(struct hf_store *store, struct breaking *b);
static bool choose(struct hf_store *store, struct breaking *b, int *exit_code);
static bool ask(const struct breaking *b);
static hf_list_fn note_holder;
static void describe_us(char *out, size_t size);
static void tell(const struct breaking *b, const struct hf_broken *broken);

const struct cli_command command_break = {
    "break", "[options] NAME", "revoke a hold: its job is ended, then the lock passes on",
    break_main};

static int break_main(const struct cli_context *context, int argc, char **argv)
{
    struct breaking b = {.found = false};
    const struct cli_option options[] = {
        {.name = "token",
         .kind = CLI_NUMBER,
         .argument = "TOKEN",
         .target = &b.token,
         .given = &b.token_given,
         .help = "the hold to break, as status shows it; required where nobody can be asked"},
        {.name = "reason",
         .kind = CLI_TEXT,
         .argument = "TEXT",
         .target = &b.reason,
         .help = "why; the holder is told"},
        {.name = "now",
         .kind = CLI_FLAG,
         .target = &b.now,
         .help = "end the hold at once: two may be at work until its holder hears of it"},
        {.name = "yes", .kind = CLI_FLAG, .target = &b.yes, .help = "do not ask"},
        {.name = NULL}};
    const struct cli_command *command = &command_break;
    int parsed = cli_parse_operand(command, options, argc, argv, &b.name);
    int exit_code = 0;
    struct hf_store *store;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (b.name == NULL)
        return cli_usage_error(command, "the name of a lock is missing");
    if (!cli_check_name(command, b.name))
        return EXIT_HF_USAGE;
    if (b.reason != NULL && strlen(b.reason) > HF_REASON_MAX)
        return cli_usage_error(command, "a --reason has at most %d bytes", HF_REASON_MAX);
    if (!b.token_given && !(isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1))
        return cli_usage_error(command, "--token is required where nobody can be asked; "
                                        "\"holdfast status NAME\" shows it");
    store = cli_open(context, &exit_code);
    if (store == NULL)
        return exit_code;
    exit_code = break_in(store, &b);
    cli_lock_clear(&b.lock);
    hf_close(store);
    return exit_code;
}

static int break_in(struct hf_store *store, struct breaking *b)
{
    char label[HF_LABEL_MAX + 1];
    struct hf_break_options options = {
        .size = sizeof options, .label = label, .reason = b->reason, .now = b->now};
    struct hf_broken broken;
    struct hf_error err;
    int exit_code = 0;
    enum hf_status status;

    if (!choose(store, b, &exit_code))
        return exit_code;
    describe_us(label, sizeof label);
    status = hf_break(store, b->name, b->token, &options, &broken, &err);
    if (status == HF_LOST) {
        (void)cli_fail(&err);
        return EXIT_HF_NO;
    }
    if (status != HF_OK)
        return cli_fail(&err);
    tell(b, &broken);
    return EXIT_SUCCESS;
}

/* Which hold is meant; false with an exit code if none is. */
static bool choose(struct hf_store *store, struct breaking *b, int *exit_code)
{
    bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    struct hf_error err;

    if (b->token_given && (b->yes || !terminal))
        return true;
    *exit_code = EXIT_HF_NO;
    if (hf_inspect(store, b->name, note_holder, b, &err) != HF_OK) {
        *exit_code = cli_fail(&err);
        return false;
    }
    if (!b->found) {
        cli_error("lock \"%.*s\" is not held: nothing was broken", NAME_SHOWN, b->name);
        return false;
    }
    if (b->lock.text == NULL) {
        cli_error("out of memory");
        *exit_code = EXIT_HF_INTERNAL;
        return false;
    }
    if (!b->token_given)
        b->token = b->lock.info.token;
    if (b->token != b->lock.info.token) {
        cli_error("lock \"%.*s\" is held with another token: nothing was broken", NAME_SHOWN,
                  b->name);
        return false;
    }
    if (b->lock.info.token == 0 && !b->now) {
        cli_error("lock \"%.*s\" is held by a client that is not holdfast, which would not hear of "
                  "it; --now ends its hold at once",
                  NAME_SHOWN, b->name);
        *exit_code = EXIT_HF_USAGE;
        return false;
    }
    return b->yes || ask(b);
}

static bool note_holder(const struct hf_lock_info *info, void *data)
{
    struct breaking *b = data;

    b->found = info->held;
    if (info->held)
        (void)cli_lock_copy(&b->lock, info);
    return false;
}

/* On stderr, because stdout may lead elsewhere. */
static bool ask(const struct breaking *b)
{
    char answer[8];

    cli_lock_print(stderr, &b->lock.info);
    fprintf(stderr, "%s",
            b->now
                ? "End this hold at once? Two may be at work until its holder hears of it. [y/N] "
                : "Break this hold? Its job is told to end, then the lock passes on. [y/N] ");
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    cli_error("nothing was broken");
    return false;
}

/* "user@host": who sat there, also behind sudo. */
static void describe_us(char *out, size_t size)
{
    const char *user = getuid() == 0 ? secure_getenv("SUDO_USER") : NULL;
    const struct passwd *entry = user == NULL ? getpwuid(getuid()) : NULL;
    char host[64] = "localhost";
    char number[24];
    char text[HF_LABEL_MAX * 2];

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(number, sizeof number, "%ld", (long)getuid());
    if (user == NULL)
        user = entry != NULL ? entry->pw_name : number;
    (void)snprintf(text, sizeof text, "%.80s@%s", user, host);
    hf__copy_printable(out, size, text);
}

/* Of a hold that is revoked: when it ends, if nobody releases it. */
static void tell_end(const struct hf_broken *broken)
{
    char left[LEFT_SIZE];

    (void)hf__format_duration(left, sizeof left, broken->remaining_ms);
    if (broken->detached)
        printf("it is detached, so nobody hears of it before its next renewal; it ends %s%s, or at "
               "once with --now\n",
               broken->remaining_ms < 0 ? "with its ttl" : "in ",
               broken->remaining_ms < 0 ? "" : left);
    else if (broken->remaining_ms < 0)
        puts("its job is told within 10s; the lock passes on when it is gone, or when its time is "
             "over");
    else
        printf("its job is told within 10s; the lock passes on when it is gone, in %s at the "
               "latest\n",
               left);
}

/* What happens next, and when. */
static void tell(const struct breaking *b, const struct hf_broken *broken)
{
    const char *label = broken->label[0] != '\0' ? broken->label : "an unknown holder";
    char name[HF_NAME_MAX + 1];

    hf__copy_printable(name, sizeof name, b->name);
    if (b->now) {
        printf("ended \"%s\", held by %s (token %" PRIu64 "): two may be at work until %s\n", name,
               broken->foreign ? "a client that is not holdfast" : label, b->token,
               broken->foreign || broken->detached ? "it finds out" : "it hears of it, within 10s");
        return;
    }
    printf("%s \"%s\", held by %s (token %" PRIu64 "): ",
           broken->again ? "broken already:" : "broke", name, label, b->token);
    tell_end(broken);
}
