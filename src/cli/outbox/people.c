/* people.c - what people do about messages that failed: list, retry, drop. */
#include "cli/outbox/outbox.h"

#include "base/base.h"
#include "core/outbox.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_MAX = 400 };

/* The columns of hf__outbox_put_list. */
enum { UID, TOPIC, KEY, STATE, ATTEMPTS, CREATED, NEXT, ERROR, BEHIND };
static const char *const columns[] = {"uid",     "topic", "key",   "state", "attempts",
                                      "created", "next",  "error", "behind"};

struct listing {
    bool json;
    size_t count;
};

static void print_json(const struct hf__db_text *values, bool first)
{
    fputs(first ? "[" : ",\n ", stdout);
    for (int i = 0; i < HF__OUTBOX_LIST_COLUMNS; i++) {
        printf("%s\"%s\": ", i == 0 ? "{" : ", ", columns[i]);
        if (values[i].data == NULL)
            fputs("null", stdout);
        else if (i == ATTEMPTS || i == BEHIND)
            fputs(values[i].data, stdout);
        else
            cli_json_string(stdout, values[i].data);
    }
    fputs("}", stdout);
}

static bool print_row(const struct hf__db_text *values, void *data)
{
    struct listing *listing = data;
    char topic[40], key[60], error[120];

    if (listing->json) {
        print_json(values, listing->count++ == 0);
        return true;
    }
    if (listing->count++ == 0)
        printf("%-36s %-8s %8s %8s  %s\n", "UID", "STATE", "ATTEMPTS", "BEHIND",
               "TOPIC, KEY: ERROR");
    hf__copy_printable(topic, sizeof topic, values[TOPIC].data);
    hf__copy_printable(key, sizeof key, values[KEY].data);
    hf__copy_printable(error, sizeof error, values[ERROR].data ? values[ERROR].data : "");
    printf("%-36s %-8s %8s %8s  %s, %s: %s\n", values[UID].data, values[STATE].data,
           values[ATTEMPTS].data, values[BEHIND].data, topic, key, error);
    return true;
}

/* Opens the database; 0, or the exit code after a message. */
static int open_database(const struct cli_command *command, struct outbox_db *db,
                         const char *schema)
{
    struct hf_error err;

    if (db->url[0] == '\0')
        return cli_usage_error(command, "--db is required: the database with the outbox");
    if (outbox_db_init(db, schema, &err) != HF_OK || outbox_db_open(db, &err) != HF_OK) {
        outbox_db_release(db);
        return cli_fail(&err);
    }
    return 0;
}

static int list_main(const struct cli_context *context, int argc, char **argv)
{
    const struct cli_command *command = &command_outbox_list;
    struct outbox_db db = {.link = NULL};
    struct listing listing = {.json = false};
    struct outbox_answer answer = {.row = print_row, .data = &listing};
    const char *schema = NULL;
    const char *operand;
    struct hf_error err;
    const struct cli_option options[] = {
        OUTBOX_DB_OPTIONS(&db, &schema), CLI_JSON_OPTION(&listing.json), {.name = NULL}};
    int parsed = cli_parse_operand(command, options, argc, argv, &operand);
    int exit_code;

    (void)context;
    if (parsed != 0)
        return cli_parse_exit(parsed);
    if (operand != NULL)
        return cli_one_too_many(command, operand);
    exit_code = open_database(command, &db, schema);
    if (exit_code != 0)
        return exit_code;
    hf__outbox_put_list(outbox_db_say(&db), &db.names);
    if (outbox_db_do(&db, &answer, &err) != HF_OK)
        exit_code = cli_fail(&err);
    else if (listing.json)
        puts(listing.count > 0 ? "]" : "[]");
    else if (listing.count == 0)
        cli_error("no message has failed in %s", db.shown);
    outbox_db_release(&db);
    return exit_code;
}

const struct cli_command command_outbox_list = {"outbox list", "--db URL [options]",
                                                "show what failed, and what is dead", list_main};

struct found {
    char id[24];
    size_t count;
};

static bool find_row(const struct hf__db_text *values, void *data)
{
    struct found *found = data;

    (void)snprintf(found->id, sizeof found->id, "%s", values[0].data);
    found->count++;
    return true;
}

struct decision {
    struct outbox_db db;
    const char *word; /* "retry" or "drop" */
    const char *uid;
    const char *schema;
    const char *reason;
};

/* Frees what is parked behind the message, in the transaction that removes it. */
static enum hf_status drop(struct outbox_db *db, const char *id, struct hf_error *err)
{
    enum hf_status status;

    hf__outbox_put_free(outbox_db_say(db), &db->names, id);
    status = outbox_db_do(db, NULL, err);
    if (status != HF_OK)
        return status;
    hf__outbox_put_delete(outbox_db_say(db), &db->names, id);
    return outbox_db_do(db, NULL, err);
}

static enum hf_status retry(struct outbox_db *db, const char *id, struct hf_error *err)
{
    hf__outbox_put_retry(outbox_db_say(db), &db->names, id);
    return outbox_db_do(db, NULL, err);
}

static enum hf_status decide(struct decision *what, struct hf_error *err)
{
    struct outbox_db *db = &what->db;
    struct found found = {.count = 0};
    struct outbox_answer answer = {.row = find_row, .data = &found};
    enum hf_status status = outbox_db_run(db, hf__outbox_begin(db->names.dialect), err);

    if (status != HF_OK)
        return status;
    hf__outbox_put_find(outbox_db_say(db), &db->names, what->uid);
    status = outbox_db_do(db, &answer, err);
    if (status == HF_OK && found.count != 1)
        status = hf__fail(err, HF_INVALID, "there is no message %s that failed in %s", what->uid,
                          db->shown);
    if (status == HF_OK) {
        hf__outbox_put_settled(outbox_db_say(db), &db->names, found.id, what->word, what->reason);
        status = outbox_db_do(db, NULL, err);
    }
    if (status == HF_OK)
        status =
            strcmp(what->word, "drop") == 0 ? drop(db, found.id, err) : retry(db, found.id, err);
    return outbox_db_end(db, status, err);
}

static int decide_main(const struct cli_command *command, int argc, char **argv)
{
    struct decision what = {.word = cli_last_word(command)};
    char reason[REASON_MAX];
    struct hf_error err;
    const struct cli_option options[] = {
        OUTBOX_DB_OPTIONS(&what.db, &what.schema),
        {0, "reason", CLI_TEXT, "TEXT", "why; required, and kept", NULL, &what.reason, NULL},
        {.name = NULL}};
    int parsed = cli_parse_operand(command, options, argc, argv, &what.uid);
    int exit_code;

    if (parsed != 0)
        return cli_parse_exit(parsed);
    if (what.uid == NULL)
        return cli_usage_error(command, "which message? \"holdfast outbox list\" shows the UIDs");
    if (!hf__outbox_uid_valid(what.uid))
        return cli_usage_error(command, "that is not a UID; \"holdfast outbox list\" shows them");
    if (what.reason == NULL || what.reason[0] == '\0')
        return cli_usage_error(command, "--reason is required, and kept with the decision");
    hf__copy_printable(reason, sizeof reason, what.reason);
    what.reason = reason;
    exit_code = open_database(command, &what.db, what.schema);
    if (exit_code != 0)
        return exit_code;
    if (decide(&what, &err) != HF_OK)
        exit_code = err.code == HF_INVALID ? (cli_fail(&err), EXIT_HF_NO) : cli_fail(&err);
    outbox_db_release(&what.db);
    return exit_code;
}

static int retry_main(const struct cli_context *context, int argc, char **argv)
{
    (void)context;
    return decide_main(&command_outbox_retry, argc, argv);
}

const struct cli_command command_outbox_retry = {"outbox retry", "--db URL --reason TEXT UID",
                                                 "retry a message that failed, or is dead",
                                                 retry_main};

static int drop_main(const struct cli_context *context, int argc, char **argv)
{
    (void)context;
    return decide_main(&command_outbox_drop, argc, argv);
}

const struct cli_command command_outbox_drop = {"outbox drop", "--db URL --reason TEXT UID",
                                                "give up on a message", drop_main};
