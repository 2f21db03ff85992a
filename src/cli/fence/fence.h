/* fence.h - what the sub-commands of `holdfast fence` share. */
#ifndef HF_CLI_FENCE_H
#define HF_CLI_FENCE_H

#include "cli/cli.h"

#include <holdfast/fence.h>

enum { FENCE_OPERANDS_MAX = 2 };

/* The words of a sub-command, read: words.c */
struct fence_words {
    const char *operands[FENCE_OPERANDS_MAX];
    int count;
    int most;               /* that the command takes */
    char url[CLI_URL_SIZE]; /* of a store, if the first operand is one */
    uint64_t token;
    bool token_given;
    const char *lock; /* whose token is meant, where several are held; NULL */
    const char *issuer;
    char identity[HF_IDENTITY_SIZE];
    char issuer_url[HF_FENCE_ISSUER_MAX * 4];
    bool takes_command; /* what follows "--" behind an operand is a command */
    char **command;     /* ends with NULL; NULL if there is none */
};

/* Reads options wherever they stand between the operands. Returns 0, or the exit code plus 1 if the
 * command is over: after a usage error, or after --help. */
int fence_parse(const struct cli_command *command, const struct cli_option *options, int argc,
                char **argv, struct fence_words *words);

/* Lines of the tables of commands. */
#define FENCE_ISSUER_HELP "issuer of the tokens; default: the store of the locks"
#define FENCE_TOKEN_OPTIONS(words)                                                                 \
    {'t',                                                                                          \
     "token",                                                                                      \
     CLI_NUMBER,                                                                                   \
     "N",                                                                                          \
     "the fencing token; default: $HOLDFAST_TOKEN",                                                \
     NULL,                                                                                         \
     &(words)->token,                                                                              \
     &(words)->token_given},                                                                       \
        {0,                                                                                        \
         "lock",                                                                                   \
         CLI_TEXT,                                                                                 \
         "NAME",                                                                                   \
         "use the token of this lock, where several are held",                                     \
         NULL,                                                                                     \
         &(words)->lock,                                                                           \
         NULL},                                                                                    \
    {                                                                                              \
        0, "issuer", CLI_TEXT, "TEXT", FENCE_ISSUER_HELP, NULL, &(words)->issuer, NULL             \
    }
#define FENCE_TABLE_OPTIONS(table, schema)                                                         \
    {0,    "table", CLI_TEXT, "T", "the table, as it is called: quoting is done here",             \
     NULL, table,   NULL},                                                                         \
    {                                                                                              \
        0, "schema", CLI_TEXT, "S", "its schema (postgres)", NULL, schema, NULL                    \
    }

/* Fills in token and issuer where they were not given: $HOLDFAST_TOKEN, or the lock's in
 * $HOLDFAST_TOKENS, and who the store of the locks is, as far as that can be learned from it. False
 * after a usage error. */
bool fence_defaults(const struct cli_command *command, const struct cli_context *context,
                    struct fence_words *words);

/* Who the store at url is: its identity, or the URL where a store has none. HF_OK; anything else:
 * words->issuer is left as it is. issuer_url is filled in all the same. */
enum hf_status fence_find_issuer(const char *url, struct fence_words *words, struct hf_error *err);

/* Reads standard input to its end, up to max bytes. NULL after a message; exit in *exit_code. */
char *fence_read_stdin(size_t max, size_t *len, int *exit_code);

/* produce.c: replaces file by what the command prints, if it succeeds. The exit code. */
int fence_produce(const char *file, const struct hf_fence_pass *pass, char **command);

/* What `fence check` found: check.c */
enum fence_level {
    FENCE_PROBLEM, /* exit 1 */
    FENCE_NOTE     /* worth knowing */
};
struct fence_report {
    bool json;
    size_t problems;
    size_t count;
    int64_t limit_ms; /* how long a database may take; 0: 20s */
    /* Who hears of findings and failures instead of stdout and stderr; both or none. */
    void (*found)(enum fence_level level, const char *check, const char *text, const char *remedy,
                  void *data);
    void (*failed)(const struct hf_error *err, void *data);
    void *data;
};
/* One finding; remedy may be "". Written out at once. */
void fence_found(struct fence_report *report, enum fence_level level, const char *check,
                 const char *text, const char *remedy);
/* It could not be looked at: says so, and returns the exit code. */
int fence_failed(struct fence_report *report, const struct hf_error *err);

/* What is behind a fence: a table of a database, a key of a store, or a file. */
struct fence_target {
    const char *db_url; /* NULL: no table */
    const char *schema; /* may be NULL */
    const char *table;
    const char *store_url; /* NULL: no key */
    const char *key;
    const char *file; /* NULL: no file */
};
/* check.c: looks at one fence; issuer->issuer and ->issuer_url are whose tokens it has to follow,
 * NULL and "" if that is not known. 0, or the exit code after fence_failed. */
int fence_inspect(const struct fence_target *target, const struct fence_words *issuer,
                  struct fence_report *report);
/* check_table.c: the same for a table. */
int fence_inspect_table(const struct fence_target *target, const struct fence_words *issuer,
                        struct fence_report *report);

/* The commands, in the order of the overview: file.c, key.c, sql.c, check.c */
#define FENCE_COMMANDS(each)                                                                       \
    each(sql) each(set) each(del) each(script) each(write) each(append) each(enter) each(reset)    \
        each(show) each(check)
#define FENCE_DECLARE(name) extern const struct cli_command command_fence_##name;
FENCE_COMMANDS(FENCE_DECLARE)
#undef FENCE_DECLARE
/* enter and reset, when the resource is a key: two operands, URL and KEY. */
int fence_key(const struct fence_words *words, enum hf_fence_op op, const char *reason);

#endif /* HF_CLI_FENCE_H */
