/* cli.h - what the commands share: exit codes, options, the global context. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include <holdfast.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit codes; those of sysexits(3) and timeout(1) where they say the same. */
enum {
    EXIT_HF_NO = 1, /* status, doctor and others: it is not as asked for */
    EXIT_HF_USAGE = 64,
    EXIT_HF_STALE = 65,
    EXIT_HF_UNAVAILABLE = 69, /* unreachable, unknown or in quarantine */
    EXIT_HF_HELD = 70,        /* once: a run began and never ended; a person has to clear it */
    EXIT_HF_UNRECORDED = 74,  /* once: CMD succeeded, but that is not on record */
    EXIT_HF_BUSY = 75,
    EXIT_HF_DENIED = 77,
    EXIT_HF_UNFIT = 78, /* --require: the store is not fit for such a lock */
    EXIT_HF_LOST = 123,
    EXIT_HF_MAX_RUNTIME = 124,
    EXIT_HF_INTERNAL = 125,
    EXIT_HF_CANNOT_EXEC = 126,
    EXIT_HF_NOT_FOUND = 127
};

/* The exit code that stands for a status. */
int cli_exit_code(enum hf_status status);

/* What the global options say. */
struct cli_context {
    const char *store_url; /* --store, else $HOLDFAST_STORE, else NULL: the default store */
};

/* One option of a command. Exactly one of the targets is used, by kind. */
enum cli_option_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_URL,
    CLI_DURATION,
    CLI_NUMBER,
    CLI_CHOICE,
    CLI_WORDS,
    CLI_LIST
};
/* The values of an option that may be given several times. A URL among them, which ends at a '#',
 * is treated as cli_take_url does. */
enum { CLI_WORDS_MAX = 8, CLI_WORD_SIZE = 2048 };
struct cli_words {
    char items[CLI_WORDS_MAX][CLI_WORD_SIZE];
    size_t count;
};
/* The same for plain words, which are not copied: the caller has the room for most of them. */
struct cli_list {
    const char **items;
    size_t most;
    size_t count;
};
struct cli_option {
    char letter;      /* 0: no short form */
    const char *name; /* without the "--" */
    enum cli_option_kind kind;
    const char *argument; /* "DURATION" in the usage; NULL for flags */
    const char *help;
    const char *const *choices; /* CLI_CHOICE: ends with NULL */
    void *target; /* FLAG: bool*; TEXT: const char**; URL: char[CLI_URL_SIZE], see cli_take_url;
                   * DURATION: int64_t* ms; NUMBER: uint64_t*; CHOICE: int* index into choices;
                   * WORDS: struct cli_words*; LIST: struct cli_list* */
    bool *given;  /* set to true when the option appears; may be NULL */
};

struct cli_command {
    const char *name;
    const char *arguments; /* "[options] NAME -- CMD [ARG...]" */
    const char *summary;   /* one line */
    int (*main)(const struct cli_context *context, int argc,
                char **argv); /* argv[0]: the command */
};

/* Every command, in the order of the overview. A new one is a file that defines its command_NAME,
 * and a line here. */
#define CLI_COMMANDS(each)                                                                         \
    each(run) each(once) each(elect) each(leader) each(acquire) each(keep) each(renew)             \
        each(release) each(status) each(list) each(slots) each(explain) each(break) each(doctor)   \
            each(repair) each(fence) each(idem) each(outbox) each(serve) each(trap) each(torture)  \
                each(odds) each(help) each(version)

#define CLI_DECLARE(name) extern const struct cli_command command_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* All of them, ends with NULL: commands.c. */
extern const struct cli_command *const cli_commands[];

/* A command that has commands of its own: subcommands.c. A new one of these is a file that defines
 * it, called "ABOVE NAME", and a line in the list of those above. */
struct cli_group {
    const struct cli_command *command;
    const struct cli_command *const *commands; /* ends with NULL */
    const char *example;                       /* what its help ends with */
};
/* Runs the one that argv[1] names, or prints the help of all; the main of group->command. */
int cli_run_subcommand(const struct cli_group *group, const struct cli_context *context, int argc,
                       char **argv);
/* The name of a command without that of the one above. */
const char *cli_last_word(const struct cli_command *command);

/* Options that are the same wherever they stand. */
#define CLI_JSON_OPTION(target)                                                                    \
    {                                                                                              \
        0, "json", CLI_FLAG, NULL, "print JSON", NULL, target, NULL                                \
    }
#define CLI_DB_OPTION(url, given)                                                                  \
    {                                                                                              \
        0, "db", CLI_URL, "URL", "the database: postgres://..., mariadb://... or sqlite:PATH",     \
            NULL, url, given                                                                       \
    }

/* Parses argv[1..] of a command against its table (ends with name NULL). Long options may be
 * abbreviated to a unique prefix and take "=value" or the next word; short ones can be bundled.
 * Options end at "--" or at the first operand. Returns the index of the first operand in argv, or
 * -1 after a message with a "did you mean" and the usage line on stderr (exit EXIT_HF_USAGE), or -2
 * after --help was answered on stdout (exit 0). *saw_dashes (may be NULL): a "--" ended them. */
int cli_parse(const struct cli_command *command, const struct cli_option *options, int argc,
              char **argv, bool *saw_dashes);

enum { CLI_HELP_SHOWN = -2 };
/* The exit code for a negative answer of the parsers. */
static inline int cli_parse_exit(int parsed)
{
    return parsed == CLI_HELP_SHOWN ? 0 : EXIT_HF_USAGE;
}

/* The same for commands with at most one operand, before or after which options may stand. Sets
 * *operand, NULL if there is none. Returns 0, or -1 or -2 as above. */
int cli_parse_operand(const struct cli_command *command, const struct cli_option *options, int argc,
                      char **argv, const char **operand);

/* The same for commands with several of them. The caller sets most, CLI_OPERANDS_MAX or less. */
enum { CLI_OPERANDS_MAX = 65 };
struct cli_operands {
    size_t most;
    size_t count;
    char *words[CLI_OPERANDS_MAX];
};
int cli_parse_operands(const struct cli_command *command, const struct cli_option *options,
                       int argc, char **argv, struct cli_operands *out);

/* Copies a URL, and overwrites its password where it stood: everybody can read the words a program
 * was started with, for as long as it runs. One that is too long is cut, but stays too long. */
enum { CLI_URL_SIZE = 1025 };
void cli_take_url(char out[CLI_URL_SIZE], char *word);

/* The store's URL for a holdfast below, with its password: store_fd.c */

/* A descriptor for CMD to inherit; -1: url has no password (or there is no memory). shown is what
 * CMD gets as HOLDFAST_STORE. */
int cli_store_fd_make(const char *url, const char *shown);
/* The URL that a holdfast above handed down together with shown. NONE: there is no such thing, or
 * it is about another store. CLOSED: there was, but its descriptor did not come down to us. */
enum cli_store_fd { CLI_STORE_FD_NONE, CLI_STORE_FD_READ, CLI_STORE_FD_CLOSED };
enum cli_store_fd cli_store_fd_read(const char *shown, char out[CLI_URL_SIZE]);

/* The candidate (the list ends with NULL) that word is a slip of, or NULL. */
const char *cli_suggest(const char *word, const char *const *candidates);
enum { CLI_SUGGEST_MAX = 48 }; /* commands, and options of a command, that are suggested */

/* Says that there is no such command (of the group, if it is not NULL), and which one was perhaps
 * meant; returns EXIT_HF_USAGE. */
int cli_unknown_command(const struct cli_command *asked_by, const struct cli_group *group,
                        const char *word);

/* What holdfast is, its commands and global options. */
void cli_print_overview(FILE *out);

/* "holdfast: MESSAGE" on stderr, as one line: control characters become '?'. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same followed by the usage line of the command; returns EXIT_HF_USAGE. */
int cli_usage_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A word as it may be quoted: without the password, should it be a URL in the wrong place. */
struct cli_shown {
    char text[512];
};
const char *cli_shown(struct cli_shown *out, const char *word);
/* Says that there is no place for the word; returns EXIT_HF_USAGE. */
int cli_one_too_many(const struct cli_command *command, const char *word);
/* Says err->text and returns the exit code for it. */
int cli_fail(const struct hf_error *err);
/* The parts of these, for whoever says it by other means. */
enum { CLI_LINE_MAX = 1040 }; /* bytes of a line with its NUL; the rest is cut */
void cli_format_line(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
const char *cli_text_of(const struct hf_error *err);

/* Opens the store of the context; on failure says why and puts the exit code in *exit_code. */
struct hf_store *cli_open(const struct cli_context *context, int *exit_code);
/* The same read-only, for commands that must not make a store. */
struct hf_store *cli_open_readonly(const struct cli_context *context, int *exit_code);
/* The command of that name, or NULL. */
const struct cli_command *cli_find(const char *name);
/* Checks a lock name, says what is wrong with it; false: exit EXIT_HF_USAGE. */
bool cli_check_name(const struct cli_command *command, const char *name);
/* The same for a ttl. */
bool cli_check_ttl(const struct cli_command *command, int64_t ttl_ms);
/* kill(2) of one process, and of the group it leads. What would reach others, a number below 2, is
 * refused with ESRCH. Async-signal-safe. */
int cli_kill(pid_t pid, int number);
int cli_kill_group(pid_t group, int number);
/* The signals that end a command, blocked and turned into a descriptor; those that were ignored
 * (nohup) stay ignored. A reader that left must not kill us with a lock in hand, so SIGPIPE is off.
 * -1 after a message. */
int cli_catch_signals(void);
/* The signal that came, 0 if none did. Async-signal-safe. */
int cli_pending_signal(int signal_fd);
/* Ends as the signal would have ended us, so that a shell sees the Ctrl-C and stops its script.
 * Returns 128 + number if it cannot. Async-signal-safe. */
int cli_die_of(int number);
/* Writes text as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD. */
void cli_json_string(FILE *out, const char *text);
/* The next character of text as it stands in such a string, and steps over it. Returns its bytes,
 * without the NUL. */
enum { CLI_JSON_CHAR_SIZE = 16 };
size_t cli_json_char(char out[CLI_JSON_CHAR_SIZE], const char **text);

#endif /* HF_CLI_CLI_H */
