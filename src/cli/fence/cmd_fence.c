/* cmd_fence.c - `holdfast fence`: the check at the resource. Files here; keys in key.c, SQL
 * in sql.c. */
#include "cli/fence/fence.h"

#include "base/base.h"
#include "cli/say/tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fence_write(const struct cli_context *context, int argc, char **argv);
static int fence_append(const struct cli_context *context, int argc, char **argv);
static int fence_enter(const struct cli_context *context, int argc, char **argv);
static int fence_reset(const struct cli_context *context, int argc, char **argv);
static int fence_show(const struct cli_context *context, int argc, char **argv);

enum { SQL, SET, DEL, SCRIPT, WRITE, APPEND, ENTER, RESET, SHOW, CHECK };
const struct cli_command fence_commands[] = {
    [SQL] = {"fence sql", "--dialect D --table T [options]",
             "print the migration that fences a table", fence_sql},
    [SET] = {"fence set", "[options] URL KEY", "set a fenced key to what is on stdin", fence_set},
    [DEL] = {"fence del", "[options] URL KEY", "delete a fenced key", fence_del},
    [SCRIPT] = {"fence script", "", "print the Redis script, for other clients", fence_script},
    [WRITE] = {"fence write", "[options] FILE [-- CMD [ARG...]]",
               "replace a fenced file with the output of CMD, or with stdin", fence_write},
    [APPEND] = {"fence append", "[options] FILE", "append stdin to a fenced file", fence_append},
    [ENTER] = {"fence enter", "[options] FILE | URL KEY", "raise the fence before the first read",
               fence_enter},
    [RESET] = {"fence reset", "--reason TEXT [options] FILE | URL KEY",
               "restart a fence after a change of stores", fence_reset},
    [SHOW] = {"fence show", "[options] FILE", "show the highest token admitted", fence_show},
    [CHECK] = {"fence check", "[options] --db URL --table T | FILE | URL KEY",
               "tell whether a fence is whole", fence_check},
    {NULL, NULL, NULL, NULL}};

static const struct cli_command *fence_command(void)
{
    static const struct cli_command fallback = {"fence", "COMMAND [ARG...]", "", NULL};
    const struct cli_command *command = cli_find("fence");

    return command != NULL ? command : &fallback;
}

static void print_overview(void)
{
    puts("usage: holdfast fence COMMAND [ARG...]\n\n"
         "Makes a resource refuse a stale token.\n\ncommands:");
    for (const struct cli_command *c = fence_commands; c->name != NULL; c++)
        printf("  %-7s %s\n", c->name + strlen("fence "), c->summary);
    puts("\noptions, where they make sense:\n"
         "  -t, --token N            the fencing token; default: $HOLDFAST_TOKEN\n"
         "      --lock NAME          the token of this lock, where several are held\n"
         "      --issuer TEXT        who issued it; default: the store of the locks\n"
         "  -w, --wait DURATION      how long to wait for another writer; default: 30s\n"
         "      --ttl DURATION       set: the key expires after it\n"
         "      --reason TEXT        reset: why; required, and kept\n"
         "      --json               show, check: as JSON\n"
         "      --db URL             check: the database (postgres:, sqlite:, mariadb:)\n"
         "  -d, --dialect D          sql: postgres, sqlite or mariadb\n"
         "      --table T            sql, check: the table, as it is called: quoting is done here\n"
         "      --schema S           sql, check: its schema (postgres)\n"
         "      --resource R         sql: its name in enter(); default: the table's\n"
         "      --key-column C       sql: fence per key, one lock per value of this column\n"
         "      --per-row            sql: a column fence_token instead; guards UPDATE only\n"
         "      --down               sql: print the reverse\n"
         "      --last               sql: with --down, remove what fenced tables share, too\n"
         "      --no-transaction     sql: no BEGIN and COMMIT, for tools that have their own\n"
         "      --statements json    sql: one statement per item, for tools\n"
         "  -h, --help               show this help\n"
         "\n"
         "Inside a job the token is known, so this is enough:\n"
         "  holdfast run nightly -- holdfast fence write report.txt -- make-report\n"
         "See \"man holdfast-fence\" for more.");
}

int cmd_fence(const struct cli_context *context, int argc, char **argv)
{
    const char *names[CLI_SUGGEST_MAX + 1];
    size_t count = 0;
    struct cli_shown shown;
    const char *near;

    if (argc < 2)
        return cli_usage_error(fence_command(),
                               "the subcommand is missing; \"holdfast fence --help\" lists them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview();
        return 0;
    }
    for (const struct cli_command *c = fence_commands; c->name != NULL; c++) {
        const char *name = c->name + strlen("fence ");

        if (strcmp(argv[1], name) == 0)
            return c->main(context, argc - 1, argv + 1);
        names[count++] = name;
    }
    names[count] = NULL;
    near = cli_suggest(argv[1], names);
    if (near != NULL)
        return cli_usage_error(fence_command(),
                               "unknown fence command \"%s\"; did you mean \"%s\"?", argv[1], near);
    return cli_usage_error(fence_command(),
                           "unknown fence command \"%s\"; \"holdfast fence --help\" lists them",
                           cli_shown(&shown, argv[1]));
}

int fence_parse(const struct cli_command *command, const struct cli_option *options, int argc,
                char **argv, struct fence_words *words)
{
    bool dashes = false;

    for (int at = 0; at < argc;) {
        int first = dashes ? 1 : cli_parse(command, options, argc - at, argv + at, &dashes);

        if (first < 0)
            return cli_parse_exit(first) + 1;
        at += first;
        if (at < argc && dashes && words->takes_command && words->count > 0) {
            words->command = argv + at + (strcmp(argv[at], "--") == 0 ? 1 : 0);
            break;
        }
        if (at >= argc)
            break;
        if (words->count == FENCE_OPERANDS_MAX)
            return cli_one_too_many(command, argv[at]) + 1;
        words->operands[words->count] = argv[at];
        if (words->count++ == 0 && strstr(argv[at], "://") != NULL) {
            cli_take_url(words->url, argv[at]);
            words->operands[0] = words->url;
        }
    }
    return 0;
}

enum hf_status fence_find_issuer(const char *url, struct fence_words *words, struct hf_error *err)
{
    struct hf_store *store;
    enum hf_status status;

    hf__url_redact(words->issuer_url, sizeof words->issuer_url, url);
    status = hf_open(url, &store, err);
    if (status != HF_OK)
        return status;
    status = hf_store_identity(store, words->identity, err);
    hf_close(store);
    if (status != HF_OK && status != HF_UNSUPPORTED)
        return status;
    words->issuer = status == HF_OK ? words->identity : words->issuer_url;
    return HF_OK;
}

/* The token in the environment; of several locks, that of --lock. False after a usage error. */
static bool find_token(const struct cli_command *command, struct fence_words *words)
{
    const char *token = secure_getenv("HOLDFAST_TOKEN");
    const char *tokens = secure_getenv("HOLDFAST_TOKENS");
    const char *name = secure_getenv("HOLDFAST_NAME");
    size_t count = tokens != NULL ? cli_tokens_find(tokens, words->lock, &words->token) : 0;
    bool one =
        words->lock == NULL || (count == 0 && name != NULL && strcmp(name, words->lock) == 0);

    if (words->lock != NULL && count > 0 && words->token != 0)
        return true;
    if (token == NULL || token[0] == '\0')
        (void)cli_usage_error(command,
                              "no token: give --token, or run this inside \"holdfast run\"");
    else if (!one)
        (void)cli_usage_error(command, "lock \"%s\" is not one of those held here", words->lock);
    else if (count > 1)
        (void)cli_usage_error(command, "%zu locks are held here: say which one with --lock NAME",
                              count);
    else if (!hf__parse_u64(token, &words->token))
        (void)cli_usage_error(command, "HOLDFAST_TOKEN: \"%s\" is not a token", token);
    else
        return true;
    return false;
}

bool fence_defaults(const struct cli_command *command, const struct cli_context *context,
                    struct fence_words *words)
{
    if (!words->token_given && !find_token(command, words))
        return false;
    if (words->token_given && words->lock != NULL) {
        (void)cli_usage_error(command, "--token and --lock cannot be used together");
        return false;
    }
    /* A store that cannot be asked now is known by its url only. */
    if (words->issuer == NULL && context->store_url != NULL && context->store_url[0] != '\0')
        (void)fence_find_issuer(context->store_url, words, NULL);
    return true;
}

char *fence_read_stdin(size_t max, size_t *len, int *exit_code)
{
    size_t size = 64 * 1024;
    char *data = malloc(size);

    *len = 0;
    *exit_code = EXIT_HF_INTERNAL;
    while (data != NULL) {
        ssize_t got = read(STDIN_FILENO, data + *len, size - *len);

        if (got == 0)
            return data;
        if (got < 0 && errno != EINTR) {
            cli_error("cannot read standard input: %s", strerror(errno));
            *exit_code = EXIT_HF_UNAVAILABLE;
            break;
        }
        *len += got > 0 ? (size_t)got : 0;
        if (*len > max) {
            cli_error("standard input is larger than %zu MiB", max / (1024 * 1024));
            *exit_code = EXIT_HF_USAGE;
            break;
        }
        if (*len == size) {
            char *more = realloc(data, size * 2);

            if (more == NULL)
                break;
            data = more;
            size *= 2;
        }
    }
    if (*exit_code == EXIT_HF_INTERNAL)
        cli_error("out of memory");
    free(data);
    return NULL;
}

/* --token, --issuer, --wait and one FILE, or up to words->most operands. Returns as fence_parse. */
static int parse_file(const struct cli_command *command, const struct cli_context *context,
                      int argc, char **argv, struct fence_words *words, struct hf_fence_pass *pass)
{
    int64_t wait_ms = HF_FENCE_WAIT_MS;
    const struct cli_option options[] = {
        {'t', "token", CLI_NUMBER, "N", "the fencing token; default: $HOLDFAST_TOKEN", NULL,
         &words->token, &words->token_given},
        FENCE_LOCK_OPTION(words),
        {0, "issuer", CLI_TEXT, "TEXT", "who issued it; default: the store of the locks", NULL,
         &words->issuer, NULL},
        {'w', "wait", CLI_DURATION, "DURATION", "how long to wait for another writer; default: 30s",
         NULL, &wait_ms, NULL},
        {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, words);

    if (over != 0)
        return over;
    if (words->count == 0)
        return cli_usage_error(command, "a FILE is needed") + 1;
    if (words->count > words->most)
        return cli_one_too_many(command, words->operands[words->most]) + 1;
    if (!fence_defaults(command, context, words))
        return EXIT_HF_USAGE + 1;
    *pass = (struct hf_fence_pass){.size = sizeof *pass,
                                   .token = words->token,
                                   .issuer = words->issuer,
                                   .issuer_url = words->issuer_url,
                                   .wait_ms = wait_ms > 0 ? wait_ms : -1};
    return 0;
}

static int fence_write(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 1, .takes_command = true};
    struct hf_fence_pass pass;
    struct hf_error err;
    int over = parse_file(&fence_commands[WRITE], context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    if (words.command != NULL && words.command[0] != NULL)
        return fence_produce(words.operands[0], &pass, words.command);
    if (hf_fence_write_fd(words.operands[0], &pass, STDIN_FILENO, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

static int fence_append(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 1};
    struct hf_fence_pass pass;
    struct hf_error err;
    enum hf_status status;
    size_t len;
    int exit_code;
    char *data;
    int over = parse_file(&fence_commands[APPEND], context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    data = fence_read_stdin(HF_FENCE_APPEND_MAX, &len, &exit_code);
    if (data == NULL)
        return exit_code;
    status = hf_fence_append(words.operands[0], &pass, data, len, &err);
    free(data);
    return status == HF_OK ? 0 : cli_fail(&err);
}

static int fence_enter(const struct cli_context *context, int argc, char **argv)
{
    struct fence_words words = {.most = 2};
    struct hf_fence_pass pass;
    struct hf_error err;
    int over = parse_file(&fence_commands[ENTER], context, argc, argv, &words, &pass);

    if (over != 0)
        return over - 1;
    if (words.count == 2)
        return fence_key(&words, HF_FENCE_ENTER_KEY, NULL);
    if (hf_fence_enter(words.operands[0], &pass, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

static int fence_reset(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &fence_commands[RESET];
    struct fence_words words = {.count = 0};
    const char *reason = NULL;
    struct hf_error err;
    const struct cli_option options[] = {
        {0, "reason", CLI_TEXT, "TEXT", "why; required, and kept", NULL, &reason, NULL},
        {0, "issuer", CLI_TEXT, "TEXT", "whose tokens follow; default: the first that comes", NULL,
         &words.issuer, NULL},
        {'t', "token", CLI_NUMBER, "N", "the mark to start from; default: none", NULL, &words.token,
         NULL},
        {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count == 0)
        return cli_usage_error(command, "a FILE, or a URL and a KEY, is needed");
    if (reason == NULL || reason[0] == '\0')
        return cli_usage_error(command, "--reason is required: it is recorded with the reset");
    if (words.count == 2)
        return fence_key(&words, HF_FENCE_RESET_KEY, reason);
    if (hf_fence_reset(words.operands[0], words.token, words.issuer, reason, &err) != HF_OK)
        return cli_fail(&err);
    return 0;
}

static int fence_show(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &fence_commands[SHOW];
    struct fence_words words = {.count = 0};
    struct hf_fence_mark mark;
    struct hf_error err;
    bool json = false;
    const struct cli_option options[] = {{0, "json", CLI_FLAG, NULL, "as JSON", NULL, &json, NULL},
                                         {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);
    char when[32] = "";
    time_t seconds;
    struct tm parts;

    (void)context;
    if (over != 0)
        return over - 1;
    if (words.count != 1)
        return cli_usage_error(command,
                               words.count == 0 ? "a FILE is needed" : "one file at a time");
    if (hf_fence_read_mark(words.operands[0], &mark, &err) != HF_OK)
        return cli_fail(&err);
    seconds = (time_t)(mark.admitted_us / 1000000);
    if (mark.token > 0 && gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (json) {
        printf("{\"token\": %" PRIu64 ", \"admitted_at\": ", mark.token);
        cli_json_string(stdout, when);
        fputs(", \"issuer\": ", stdout);
        cli_json_string(stdout, mark.issuer);
        puts("}");
    } else if (mark.token == 0) {
        puts("no token has been admitted yet");
    } else {
        printf("%" PRIu64 " admitted at %s, issued by %s\n", mark.token, when,
               mark.issuer[0] != '\0' ? mark.issuer : "an unnamed store");
    }
    return 0;
}
