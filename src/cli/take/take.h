/* take.h - taking a lock for a command: wait for the store, then for the lock, within one limit,
 * and say meanwhile who or what is waited for.
 *
 * run, acquire and keep all do it in this order: take_check their options, take_open the store,
 * take_lock, take_end. */
#ifndef HF_CLI_TAKE_TAKE_H
#define HF_CLI_TAKE_TAKE_H

#include "cli/cli.h"
#include "cli/say/stderr.h"
#include "cli/say/thread.h"

#include <holdfast/several.h>
#include <holdfast/store.h>
#include <signal.h>
#include <time.h>

/* Which locks: names.c */

enum take_kind { TAKE_ONE, TAKE_ALL, TAKE_ANY };

struct take_names {
    /* The options. */
    bool all;
    bool any;
    uint64_t slots; /* one of NAME#0 to NAME#slots-1 */
    uint64_t slot;  /* a certain one of these */
    bool slots_given;
    bool slot_given;

    enum take_kind kind;
    const char *list[HF_SEVERAL_MAX];
    size_t count;
    char text[HF_SEVERAL_MAX][HF_NAME_MAX + 1]; /* where list points to, for slots */
};

/* Their lines in the table of a command. */
#define TAKE_NAMES_OPTIONS(names)                                                                  \
    {0, "all", CLI_FLAG, NULL, "take all of the locks named", NULL, &(names)->all, NULL},          \
        {0,    "any",         CLI_FLAG, NULL, "take one of the locks named, any that is free",     \
         NULL, &(names)->any, NULL},                                                               \
        {0,                                                                                        \
         "slots",                                                                                  \
         CLI_NUMBER,                                                                               \
         "N",                                                                                      \
         "take one of N slots, the locks NAME#0 to NAME#N-1",                                      \
         NULL,                                                                                     \
         &(names)->slots,                                                                          \
         &(names)->slots_given},                                                                   \
    {                                                                                              \
        0, "slot", CLI_NUMBER, "I", "with --slots: this slot, and no other", NULL, &(names)->slot, \
            &(names)->slot_given                                                                   \
    }

/* Makes the list out of the names that were given, count words. 0, or EXIT_HF_USAGE after a
 * message. */
int take_find_names(const struct cli_command *command, struct take_names *names, char *const *words,
                    size_t count);
/* "NAME", "NAME and 2 more", as it stands in a sentence after "lock": for people. */
enum { TAKE_SHOWN_SIZE = HF_NAME_MAX + 32 };
void take_show_names(const struct take_names *names, char out[TAKE_SHOWN_SIZE]);
/* The number of the slot that a name stands for; false unless slots were asked for. */
bool take_slot_of(const struct take_names *names, const char *name, uint64_t *slot);

/* The options they share: options.c */

struct take_options {
    const char *label;  /* NULL: not given */
    int64_t ttl_ms;     /* 30s, unless ttl_given */
    int64_t wait_ms;    /* < 0: without limit */
    uint64_t busy_exit; /* 0 to 255 */
    bool no_wait;
    bool wait_given;
    bool ttl_given;
    bool always_waits; /* the command has no option that would limit the wait */
};

/* What they are if nothing is given. */
#define TAKE_DEFAULTS                                                                              \
    {                                                                                              \
        .ttl_ms = HF_TTL_DEFAULT_MS, .wait_ms = -1, .busy_exit = EXIT_HF_BUSY                      \
    }

/* Their lines in the table of a command. */
#define TAKE_OPTIONS(given)                                                                        \
    {'n',                                                                                          \
     "no-wait",                                                                                    \
     CLI_FLAG,                                                                                     \
     NULL,                                                                                         \
     "fail at once if another holds the lock or the store is down",                                \
     NULL,                                                                                         \
     &(given)->no_wait,                                                                            \
     NULL},                                                                                        \
        {'w',                                                                                      \
         "wait",                                                                                   \
         CLI_DURATION,                                                                             \
         "DURATION",                                                                               \
         "wait at most this long; default: without limit",                                         \
         NULL,                                                                                     \
         &(given)->wait_ms,                                                                        \
         &(given)->wait_given},                                                                    \
        {'E',                                                                                      \
         "busy-exit",                                                                              \
         CLI_NUMBER,                                                                               \
         "CODE",                                                                                   \
         "exit code if another holds the lock; default: 75",                                       \
         NULL,                                                                                     \
         &(given)->busy_exit,                                                                      \
         NULL},                                                                                    \
        {0,                                                                                        \
         "ttl",                                                                                    \
         CLI_DURATION,                                                                             \
         "DURATION",                                                                               \
         "how long the lease lasts unless renewed; default: 30s, or what the store grants",        \
         NULL,                                                                                     \
         &(given)->ttl_ms,                                                                         \
         &(given)->ttl_given},                                                                     \
    {                                                                                              \
        0, "label", CLI_TEXT, "TEXT", "what others see as the holder; default: host/pid/command",  \
            NULL, &(given)->label, NULL                                                            \
    }

/* Checks them, and the name of the lock (NULL: it is missing). 0, or EXIT_HF_USAGE
 * after a message. */
int take_check(const struct cli_command *command, const char *name, struct take_options *given);

/* While the store is being opened: startup_signals.c */

struct take_startup {
    timer_t timer;
    struct sigaction before; /* of the timer's signal */
    int signal_fd;
    void (*last_words)(int number);
    bool watched;
};

/* From here on we die of a signal at once, however long the main thread is held up. last_words (may
 * be NULL) is called before, and has to be async-signal-safe. The struct must not be moved. */
void take_startup_begin(struct take_startup *startup, int signal_fd,
                        void (*last_words)(int number));
/* From here on signals wait to be taken. Call it before there is anything to give back. */
void take_startup_end(struct take_startup *startup);

/* A lock being taken. Lives as long as its lease, whose news comes by here. */
struct take {
    /* Set by the caller. */
    struct cli_stderr *writer;
    const char *name;         /* the lock, or the first that was named */
    const char *const *names; /* all of them, unless it is TAKE_ONE */
    size_t count;             /* how many */
    enum take_kind kind;      /* whether all are taken, or one */
    const char *wait_above;   /* as in hf_acquire_options */
    const char *label;        /* NULL: host/pid/command of ... */
    pid_t label_pid;          /* ... this process */
    const char *label_cmd;    /* NULL: what the system says */
    int signal_fd;            /* readable: stop */
    bool quiet;               /* off a terminal only trouble is said */
    bool always_waits;        /* as in the options */
    void (*last_words)(int number);
    void (*on_open)(struct take *take); /* while a signal still ends us at once; may be NULL */
    void (*on_renewed)(struct hf_lease *lease, void *data); /* may be NULL */
    /* The lock or the store is not to be had at once, and we wait; may be NULL. */
    void (*on_wait)(struct take *take, const struct hf_error *why);
    void *data; /* the caller's */

    struct hf_store *store;                  /* set by take_open; the caller closes it */
    const char *url;                         /* likewise: the caller's */
    char shown_label[HF_LABEL_MAX + 1];      /* likewise: what others see */
    struct hf_lease *leases[HF_SEVERAL_MAX]; /* set by take_lock: what was taken, sorted by name */
    size_t taken;                            /* how many */

    /* How long we wait for the store and the lock, together. */
    int64_t wait_ms;        /* as it was given; < 0: without limit */
    int64_t until_ns;       /* 0: no wait at all; HF_NEVER: without limit */
    enum hf_status trouble; /* what was said last; HF_OK: none */

    /* Those who tell: tell.c */
    int64_t since_ns;
    int64_t trouble_until_ns;
    bool live; /* stderr is a terminal */
    bool painted;
    bool running;
    bool stop;
    pthread_t thread;
    struct cli_condition condition;
};

/* Waiting for the store, and for the lock: take.c */

/* Opens the store; one that is down, or in quarantine, is asked again until the limit, which begins
 * now (wait_ms as in hf_acquire_options). */
enum hf_status take_open(struct take *take, const char *url, int64_t wait_ms, struct hf_error *err);
/* How the answer to another question is waited for, as hf__wait_go_on has it: a signal ends the
 * wait, and a trouble is said once. */
struct hf_open_options take_waiting(struct take *take);
/* Takes the lock, or the locks, and says meanwhile who we wait for. Of the options the caller sets
 * what kind of lease it is to be. *out: the lease, of several the first. take_end has to follow. */
enum hf_status take_lock(struct take *take, struct hf_acquire_options *options,
                         struct hf_lease **out, struct hf_error *err);
/* hf_release for all that was taken. */
enum hf_status take_give_back(struct take *take, struct hf_error *err);
/* Says on writer what a release that failed so means for the lock. */
void take_say_not_released(struct cli_stderr *writer, const char *name, const struct hf_error *err);
/* Says that whoever asked for the lease could not be told of it; errno says why. */
void take_say_not_written(const char *name);
/* Who we are in the eyes of others: the label that was given, or "host/pid/command". */
void take_describe(const struct take *take, char *out, size_t size);
/* Nothing is told any more; before the store is closed. */
void take_end(struct take *take);

/* What is said while we wait: tell.c */

void take_tell_begin(struct take *take);
/* Says why the store does not serve us, unless that is known already. */
void take_tell_trouble(struct take *take, const struct hf_error *why);
/* Nothing more is said from here on, and the live line is gone. Does not wait for the store. */
void take_tell_hush(struct take *take);
/* "WHY; waiting for at most 10s". */
void take_say_trouble(const struct take *take, const struct hf_error *why);

#endif /* HF_CLI_TAKE_TAKE_H */
