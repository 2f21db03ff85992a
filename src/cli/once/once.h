/* once.h - how the parts of `holdfast once` fit together.
 *
 *     cmd_once.c   the options, and which of its jobs is meant
 *     settings.c   from the options to a plan
 *     turns.c      look, take the lock, look again, run, write the outcome: until it is settled;
 *                  under_lock.c has the part with the lock in hand, verdict.c what is said
 *     output.c     what CMD says, kept and passed on
 *     show.c, check.c and clear.c   for people who ask
 *
 * client/once.h has what the library does as well: what is on record, and what is written there.
 */
#ifndef HF_CLI_ONCE_ONCE_H
#define HF_CLI_ONCE_ONCE_H

#include "cli/run/job.h"
#include "client/once.h"

#include <holdfast/record.h>

enum { ONCE_EDGE_SIZE = HF_NAME_MAX + 320 }; /* bytes of the warning about the edge of a slack */

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
    struct hf__once_work work;
    bool warned; /* that the store may forget what is on record */
    bool ran;    /* CMD, in a turn before: what follows is a retry of ours */

    /* Of the present turn. */
    enum once_turn turn;
    int exit_code;
    struct once_output *output; /* NULL: not kept */
    char slot_variable[sizeof "HOLDFAST_ONCE_SLOT=" + HF__SLOT_NAME_SIZE];
    const char *variables[2];
    char sentence[HF__ONCE_SENTENCE_SIZE];
};

/* From the options to work.plan: settings.c. 0, or EXIT_HF_USAGE after a message. */
int once_settings(struct once *once);

/* Turns: turns.c, and what happens in one with the lock in hand: under_lock.c */

int once_run(struct once *once, const struct cli_context *context);
bool once_before(struct run_job *job, int *exit_code);
void once_after(struct run_job *job, const struct run_outcome *outcome);

/* What follows from the record, and how it is said: verdict.c */

/* This is the end, with that exit code. */
void once_settle(struct once *once, int exit_code);
/* A sentence about a record, and what to do about it ("": nothing). */
void once_say(struct once *once, const struct hf__once_record *record, const char *advice);
/* The same, and the end. */
void once_refuse(struct once *once, const struct hf__once_record *record, const char *advice,
                 int exit_code);
/* It is not ours to run: somebody else did, or will. Says so, unless --skip-ok is given. */
void once_skip(struct once *once, const char *advice);
void once_say_held(struct once *once, const struct hf__once_record *record);
/* All of it for what hf__once_next found to be settled; nothing happens for the rest. */
void once_say_settled(struct once *once, enum hf__once_next next);

/* What CMD says: output.c */

/* Makes pipes, whose other ends become output[]. NULL after a message if it cannot. */
struct once_output *once_output_begin(struct cli_stderr *writer, int output[2]);
/* Waits a moment for the rest, and returns the end of it; *len bytes. Once. */
const char *once_output_end(struct once_output *output, size_t *len);
/* Takes NULL. */
void once_output_free(struct once_output *output);

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
