/* check.c - `holdfast fence check`: whether a fence is there, whole, and of the store in use. */
#include "cli/fence/fence.h"

#include "base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_SIZE = 512 };

struct options {
    char db[CLI_URL_SIZE];
    bool has_db;
    const char *table;
    const char *schema;
};

void fence_found(struct fence_report *report, enum fence_level level, const char *check,
                 const char *text, const char *remedy)
{
    const char *name = level == FENCE_PROBLEM ? "problem" : "note";

    report->problems += level == FENCE_PROBLEM;
    if (report->found != NULL) {
        report->found(level, check, text, remedy, report->data);
    } else if (report->json) {
        printf("%s\n  {\"check\": ", report->count > 0 ? "," : "");
        cli_json_string(stdout, check);
        printf(", \"level\": \"%s\", \"text\": ", name);
        cli_json_string(stdout, text);
        fputs(", \"remedy\": ", stdout);
        cli_json_string(stdout, remedy);
        putchar('}');
    } else {
        char shown[TEXT_SIZE];

        hf__copy_printable(shown, sizeof shown, text);
        printf("%s: %s: %s\n", name, check, shown);
        hf__copy_printable(shown, sizeof shown, remedy);
        if (remedy[0] != '\0')
            printf("    remedy: %s\n", shown);
    }
    report->count++;
}

int fence_failed(struct fence_report *report, const struct hf_error *err)
{
    if (report->failed == NULL)
        return cli_fail(err);
    report->failed(err, report->data);
    return cli_exit_code(err->code);
}

/* Does a mark follow the tokens of the store in use? */
static void check_mark(const struct hf_fence_mark *mark, const struct fence_words *words,
                       const char *what, struct fence_report *report)
{
    char text[TEXT_SIZE];
    char remedy[TEXT_SIZE];

    if (mark->token == 0 && mark->issuer[0] == '\0') {
        (void)snprintf(text, sizeof text, "%s has no mark: nothing has been admitted yet", what);
        fence_found(report, FENCE_PROBLEM, "installed", text,
                    "write it through the fence: holdfast fence write, set or enter");
        return;
    }
    (void)snprintf(text, sizeof text, "fenced, token %" PRIu64 " was admitted", mark->token);
    fence_found(report, FENCE_NOTE, "installed", text, "");
    if (words->issuer == NULL || mark->issuer[0] == '\0' ||
        strcmp(mark->issuer, words->issuer) == 0 || strcmp(mark->issuer, words->issuer_url) == 0)
        return;
    (void)snprintf(text, sizeof text, "%s follows %s, the store in use is %s", what, mark->issuer,
                   words->issuer);
    (void)snprintf(remedy, sizeof remedy,
                   "after a change of stores, once no old holder is left: holdfast fence reset "
                   "--reason TEXT %s",
                   what);
    fence_found(report, FENCE_PROBLEM, "issuer", text, remedy);
}

/* A mark that is there and cannot be used is a finding; one that cannot be looked at is not. */
static int unreadable(const struct hf_error *err, struct fence_report *report)
{
    if (err->code != HF_CORRUPT && err->code != HF_DENIED && err->code != HF_INVALID)
        return fence_failed(report, err);
    fence_found(report, FENCE_PROBLEM, "installed", err->text, "");
    return 0;
}

static int inspect_file(const char *file, const struct fence_words *issuer,
                        struct fence_report *report)
{
    struct hf_fence_mark mark;
    struct hf_error err;
    struct stat about;

    if (hf_fence_read_mark(file, &mark, &err) != HF_OK)
        return unreadable(&err, report);
    check_mark(&mark, issuer, file, report);
    if (stat(file, &about) != 0) {
        if (errno != ENOENT)
            return 0;
        fence_found(report, FENCE_NOTE, "installed", "the file itself is not there", "");
        return 0;
    }
    if (about.st_nlink > 1)
        fence_found(report, FENCE_PROBLEM, "covered",
                    "the file has another hard link, by which it is written past the fence",
                    "remove the other link");
    if ((about.st_mode & S_IWOTH) != 0)
        fence_found(report, FENCE_PROBLEM, "roles", "everybody may write to the file, fence or not",
                    "chmod o-w");
    return 0;
}

static int inspect_key(const struct fence_target *target, const struct fence_words *issuer,
                       struct fence_report *report)
{
    struct hf_fence_mark mark = {.token = 0};
    struct hf_store *store;
    struct hf_error err;
    enum hf_status status = hf_open(target->store_url, &store, &err);

    if (status != HF_OK)
        return fence_failed(report, &err);
    if (err.text[0] != '\0' && report->found == NULL)
        cli_error("warning: %s", err.text);
    status = hf_fence_read_key(store, target->key, &mark, &err);
    hf_close(store);
    if (status != HF_OK)
        return unreadable(&err, report);
    check_mark(&mark, issuer, target->key, report);
    return 0;
}

int fence_inspect(const struct fence_target *target, const struct fence_words *issuer,
                  struct fence_report *report)
{
    if (target->file != NULL)
        return inspect_file(target->file, issuer, report);
    return target->store_url != NULL ? inspect_key(target, issuer, report)
                                     : fence_inspect_table(target, issuer, report);
}

static int misused(const struct cli_command *command, const struct options *options,
                   const struct fence_words *words)
{
    if (options->has_db != (options->table != NULL))
        return cli_usage_error(command, "--db and --table go together");
    if (options->has_db && words->count > 0)
        return cli_one_too_many(command, words->operands[0]);
    if (!options->has_db && words->count == 0)
        return cli_usage_error(command,
                               "say what to check: --db URL --table T, a file, or URL and KEY");
    if (!options->has_db && options->schema != NULL)
        return cli_usage_error(command, "--schema needs --db");
    return 0;
}

/* Against which store's tokens the marks are compared; "" and a note if none was named. */
static int learn_issuer(const struct cli_context *context, struct fence_words *words,
                        struct fence_report *report)
{
    struct hf_error err;

    if (words->issuer != NULL)
        return 0;
    if (context->store_url == NULL || context->store_url[0] == '\0') {
        fence_found(report, FENCE_NOTE, "issuer",
                    "the store of the locks was not named, so marks were not compared with it",
                    "give --store, or set HOLDFAST_STORE");
        return 0;
    }
    return fence_find_issuer(context->store_url, words, &err) == HF_OK ? 0 : cli_fail(&err);
}

static int check(const struct cli_context *context, const struct options *options,
                 struct fence_words *words, struct fence_report *report)
{
    const struct fence_target target = {.db_url = options->has_db ? options->db : NULL,
                                        .schema = options->schema,
                                        .table = options->table,
                                        .store_url = words->count == 2 ? words->operands[0] : NULL,
                                        .key = words->operands[1],
                                        .file = words->count == 1 ? words->operands[0] : NULL};
    int exit_code = learn_issuer(context, words, report);

    return exit_code != 0 ? exit_code : fence_inspect(&target, words, report);
}

static int check_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_fence_check;
    struct fence_words words = {.count = 0};
    struct fence_report report = {.json = false};
    struct options said = {.has_db = false};
    const struct cli_option options[] = {
        CLI_DB_OPTION(said.db, &said.has_db),
        FENCE_TABLE_OPTIONS(&said.table, &said.schema),
        {0, "issuer", CLI_TEXT, "TEXT", FENCE_ISSUER_HELP, NULL, &words.issuer, NULL},
        CLI_JSON_OPTION(&report.json),
        {.name = NULL}};
    int over = fence_parse(command, options, argc, argv, &words);
    int exit_code;

    if (over != 0)
        return over - 1;
    exit_code = misused(command, &said, &words);
    if (exit_code != 0)
        return exit_code;
    if (report.json)
        fputs("{\"findings\": [", stdout);
    exit_code = check(context, &said, &words, &report);
    if (report.json)
        printf("\n], \"ok\": %s}\n", exit_code != 0         ? "null"
                                     : report.problems == 0 ? "true"
                                                            : "false");
    if (fflush(stdout) != 0)
        return EXIT_HF_UNAVAILABLE;
    return exit_code != 0 ? exit_code : report.problems > 0 ? EXIT_HF_NO : 0;
}

const struct cli_command command_fence_check = {"fence check",
                                                "[options] --db URL --table T | FILE | URL KEY",
                                                "tell whether a fence is whole", check_main};
