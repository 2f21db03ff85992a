/* once.h - how the parts of `holdfast once` fit together.
 *
 *     cmd_once.c   the options, and which of its jobs is meant
 *     settings.c   from the options to a schedule and its rules; zone_file.c reads the zone
 *     look.c       what is on record
 *     turns.c      look, take the lock, look again, run, write the outcome: until it is settled;
 *                  under_lock.c has the part with the lock in hand, verdict.c what is said
 *     output.c     what CMD says, kept and passed on
 *     tell.c       records in words; show.c, check.c and clear.c for people who ask
 *
 * core/schedule.h says which slot a moment belongs to, core/once.h what a record means.
 */
#ifndef HF_CLI_ONCE_ONCE_H
#define HF_CLI_ONCE_ONCE_H

#include "cli/run/job.h"
#include "core/once.h"
#include "core/schedule.h"

#include <holdfast/record.h>

/* The keys of its records, beside its lock. */
#define ONCE_SETTINGS_KEY "once"
#define ONCE_SLOT_PREFIX  "once:"
enum {
    ONCE_KEY_SIZE = sizeof ONCE_SLOT_PREFIX + HF__ONCE_SLOT_MAX,
    ONCE_TIME_SIZE = 32, /* bytes of "2026-11-17 03:00:02 UTC" */
    ONCE_SENTENCE_SIZE = 768
};

/* What the command line says. */
struct once_request {
    struct run_options run; /* name is KEY */
    int64_t per_ms;
    const char *at, *tz;
    uint64_t done_exit;
    uint64_t retries;
    int64_t retry_after_ms;
    int64_t slack_ms, start_by_ms, keep_ms, late_ms;
    int on_crash;
    bool per_given, slack_given, start_by_given, keep_given, late_given;
    bool output;
    bool clear, show, history, check, json;
    const char *reason, *slot;
};

/* A record that was read, and the clock of the store that has it. */
struct once_found {
    bool there;
    struct hf__once_record record; /* points into text */
    int64_t written_ms, until_ms;
    int64_t now_ms;
    enum hf__once_reading reading;
    char text[HF__ONCE_TEXT_MAX];
};

struct once_output;

/* What became of a turn, as the hooks saw it. */
enum once_turn {
    ONCE_NOT_BEGUN, /* the lock was not taken */
    ONCE_SETTLED,   /* the exit code is known */
    ONCE_AGAIN      /* look, and take the lock again */
};

struct once {
    const struct cli_command *command;
    struct once_request ask;
    struct run_job job;
    struct hf__once_settings settings;
    struct hf__once_rules rules;
    struct hf__schedule schedule;
    unsigned char *zone_data; /* what schedule.zone points into */
    int64_t keep_ms;          /* 0: for ever */
    int64_t began_ns;         /* when we were started */
    int64_t guess_ms;         /* our own clock then */
    struct hf__slot slot;     /* fixed with the store's first answer */
    bool slot_known;
    bool warned; /* that the store may forget what is on record */
    bool looked; /* at the record, when we came */
    bool ran;    /* CMD, in a turn before: what follows is a retry of ours */
    /* Without a period: the token of the failure that was on record when we came; 0: there was
     * none. Whoever runs the same command again wants it to be tried again. */
    uint64_t failed_before;
    /* The token of a run that we put on record and did not start: not even a crash. 0: none. */
    uint64_t not_started;
    char label[HF_LABEL_MAX + 1];
    char key[ONCE_KEY_SIZE];
    struct once_found found;

    /* Of the present turn. */
    enum once_turn turn;
    int exit_code;
    struct hf__once_record ours;
    int64_t started_ns;
    struct once_output *output; /* NULL: not kept */
    char slot_variable[sizeof "HOLDFAST_ONCE_SLOT=" + HF__SLOT_NAME_SIZE];
    const char *variables[2];
    bool settings_due;            /* nobody has put those of the key on record yet */
    char text[HF__ONCE_TEXT_MAX]; /* what is being written */
    char settings_text[HF__ONCE_TEXT_MAX];
    char sentence[ONCE_SENTENCE_SIZE];
};

/* From the options to a schedule: settings.c. 0, or EXIT_HF_USAGE after a message. */
int once_settings(struct once *once);
/* "--per 1d --at 03:00 --tz Europe/Berlin", or "no --per". */
char *once_settings_text(char *out, size_t size, const struct hf__once_settings *settings);

/* Reads the zone from the system's database: zone_file.c. The same. */
int once_zone(const struct cli_command *command, const char *name, struct hf__zone *zone,
              unsigned char **data);

/* What is on record: look.c */

/* Reads one record. HF_OK also if there is none. HF_CORRUPT: it makes no sense. */
enum hf_status once_read(struct hf_store *store, const char *name, const char *key,
                         struct once_found *found, struct hf_error *err);
void once_slot_key(char out[ONCE_KEY_SIZE], const char *slot);
/* Reads the record of the slot that was meant when we were started, waiting for the store as the
 * options say. */
enum hf_status once_look(struct once *once, struct hf_error *err);
/* HF_INVALID if the settings of the found record are not ours. */
enum hf_status once_same_settings(const struct once *once, const struct hf__once_settings *found,
                                  struct hf_error *err);

/* Turns: turns.c, and what happens in one with the lock in hand: under_lock.c */

int once_run(struct once *once, const struct cli_context *context);
bool once_before(struct run_job *job, int *exit_code);
void once_after(struct run_job *job, const struct run_outcome *outcome);

/* What follows from the record, and how it is said: verdict.c */

/* NULL: nothing is on record about the slot. */
const struct hf__once_record *once_on_record(const struct once *once);
/* Whether what is on record is a failure of before we came, of a key without a period. */
bool once_came_after(const struct once *once);
/* Whether it is a run of ours that was not started after all. */
bool once_not_started(const struct once *once);
enum hf__once_next once_decide(struct once *once, bool holding, int64_t *until_ms);
/* This is the end, with that exit code. */
void once_settle(struct once *once, int exit_code);
/* A sentence about a record, and what to do about it ("": nothing). */
void once_say(struct once *once, const struct hf__once_record *record, const char *advice);
/* The same, and the end. */
void once_refuse(struct once *once, const struct hf__once_record *record, const char *advice,
                 int exit_code);
/* It is not ours to run: another one did it, or will. Says so, unless --skip-ok is given. */
void once_skip(struct once *once, const char *advice);
void once_say_held(struct once *once, const struct hf__once_record *record);
/* All of it for what once_decide found to be settled; nothing happens for the rest. */
void once_say_settled(struct once *once, enum hf__once_next next);

/* What CMD says: output.c */

/* Makes pipes, whose other ends become output[]. NULL after a message if it cannot. */
struct once_output *once_output_begin(struct cli_stderr *writer, int output[2]);
/* Waits a moment for the rest, and returns the end of it; *len bytes. Once. */
const char *once_output_end(struct once_output *output, size_t *len);
/* Takes NULL. */
void once_output_free(struct once_output *output);

/* Records in words: tell.c */

/* "2026-11-17 03:00:02 UTC". */
char *once_time(char out[ONCE_TIME_SIZE], int64_t ms);
/* "report, slot 2026-11-17: done by LABEL, began ..., took 4m12s": one line about a record (NULL:
 * there is none). slot is "ever" where there are no periods. */
void once_sentence(char *out, size_t size, const char *key, const char *slot,
                   const struct hf__once_record *record);

/* For people who ask: show.c, check.c, clear.c. They return the exit code. */
int once_show(struct once *once, const struct cli_context *context);
int once_history(struct once *once, const struct cli_context *context);
int once_check(struct once *once, const struct cli_context *context);
int once_clear(struct once *once, const struct cli_context *context);

/* One slot of a list. */
struct once_entry {
    char slot[HF__ONCE_SLOT_MAX + 1];
    struct hf__once_record record; /* without output */
    bool readable;
};
struct once_list {
    struct once_entry *entries;
    size_t count;
    bool no_memory;
};
/* All slots on record, in order; show.c. HF_CORRUPT: all but those that are damaged. The caller
 * frees list->entries, whatever it returns. */
enum hf_status once_list(struct hf_store *store, const char *name, struct once_list *list,
                         struct hf_error *err);

#endif /* HF_CLI_ONCE_ONCE_H */
