/* once.h - work that is to succeed once, or once per period: what `holdfast once` and hf_once_*
 * have in common, which is all but the work itself, and waiting for it to be ours.
 *
 *     once_zone.c   a time zone from the system's database
 *     once_record.c   what is on record about the slot that is meant
 *     once_turn.c   what is written with the lock in hand, before the work and after it
 *     once_text.c   records in words
 *     once.c        hf_once_*; once_open.c: making a handle
 *
 * core/schedule.h says which slot a moment belongs to, core/once_plan.h what options mean,
 * core/once.h what a record means for whoever comes next. */
#ifndef HF_CLIENT_ONCE_H
#define HF_CLIENT_ONCE_H

#include "base/base.h"
#include "core/once_plan.h"
#include "core/wait.h"

#include <holdfast/once.h>

/* The keys of its records, beside its lock. */
#define HF__ONCE_SETTINGS_KEY "once"
#define HF__ONCE_SLOT_PREFIX  "once:"
enum {
    HF__ONCE_KEY_SIZE = sizeof HF__ONCE_SLOT_PREFIX + HF__ONCE_SLOT_MAX,
    HF__ONCE_TIME_SIZE = 32, /* bytes of "2026-11-17 03:00:02 UTC" */
    HF__ONCE_SENTENCE_SIZE = 768
};

/* A record that was read, and the clock of the store that has it. */
struct hf__once_found {
    bool there;
    struct hf__once_record record; /* points into text */
    int64_t written_ms, until_ms;
    int64_t now_ms;
    enum hf__once_reading reading;
    char text[HF__ONCE_TEXT_MAX + 1]; /* with a NUL at its end */
};

/* The work as a process means it, over all of its turns. */
struct hf__once_work {
    /* Set by the caller. */
    struct hf_store *store;
    const char *name; /* KEY */
    char label[HF_LABEL_MAX + 1];
    struct hf__once_plan plan;
    int64_t began_ns; /* when we were started */
    int64_t guess_ms; /* our own clock then */

    unsigned char *zone_data; /* what plan.schedule.zone points into; malloc */
    struct hf__slot slot;     /* fixed with the store's first answer */
    bool slot_known;
    bool on_edge;  /* near the edge of its slack, and that was not told yet */
    bool was_read; /* the record, when we came */
    /* Without a period: the token of the failure that was on record when we came; 0: there was
     * none. Whoever begins the same work again wants it to be tried again. */
    uint64_t failed_before;
    /* The token of a run that we put on record and did not start: not even a crash. 0: none. */
    uint64_t not_started;
    char key[HF__ONCE_KEY_SIZE];
    struct hf__once_found found;

    /* Of the present turn. */
    struct hf__once_record ours;
    int64_t started_ns;
    bool settings_due;            /* nobody has put those of the key on record yet */
    char text[HF__ONCE_TEXT_MAX]; /* what is being written */
    char settings_text[HF__ONCE_TEXT_MAX];
};

/* A time zone from the system's database; *data is freed, and becomes what the zone points into.
 * HF_OK; HF_INVALID, HF_NOMEM: the text begins with option, which names it. */
enum hf_status hf__once_zone(const char *option, const char *name, struct hf__zone *zone,
                             unsigned char **data, struct hf_error *err);

/* What is on record: once_record.c */

/* Reads one record. HF_OK even if there is none. HF_CORRUPT: it makes no sense. */
enum hf_status hf__once_get(struct hf_store *store, const char *name, const char *key,
                            struct hf__once_found *found, struct hf_error *err);
void hf__once_slot_key(char out[HF__ONCE_KEY_SIZE], const char *slot);
/* Reads the record of the slot that was meant when we were started. Does not wait. */
enum hf_status hf__once_read_record(struct hf__once_work *work, struct hf_error *err);
/* The same, and waits for the store until until_ns, as hf__wait_go_on does. */
enum hf_status hf__once_read_waiting(struct hf__once_work *work, int64_t until_ns,
                                     const struct hf_open_options *waiting, struct hf_error *err);
/* The warning that machines a little apart mean different slots, once; false: there is no need for
 * it. */
bool hf__once_edge(struct hf__once_work *work, char *out, size_t size);
/* HF_INVALID if the settings of the found record are not ours. */
enum hf_status hf__once_same_settings(const struct hf__once_work *work,
                                      const struct hf__once_settings *found, struct hf_error *err);

/* NULL: nothing is on record about the slot. */
const struct hf__once_record *hf__once_on_record(const struct hf__once_work *work);
/* Whether what is on record is a failure of before we came, of a key without a period. */
bool hf__once_came_after(const struct hf__once_work *work);
/* Whether it is a run of ours that was not started after all. */
bool hf__once_not_started(const struct hf__once_work *work);
/* What follows from it. */
enum hf__once_next hf__once_next(const struct hf__once_work *work, bool holding, int64_t *until_ms);

/* With the lock in hand: once_turn.c. A put may leave a warning in *err with HF_OK. */

/* The settings of the key, and the record of the slot once more. */
enum hf_status hf__once_read_again(struct hf__once_work *work, struct hf_error *err);
/* That it runs; from then on a crash is seen by whoever comes next. */
enum hf_status hf__once_write_running(struct hf__once_work *work, struct hf_lease *lease,
                                      struct hf_error *err);
/* That a run crashed, and is held. */
enum hf_status hf__once_write_held(struct hf__once_work *work, struct hf_lease *lease,
                                   struct hf_error *err);
/* That it is too late to start. */
enum hf_status hf__once_write_late(struct hf__once_work *work, struct hf_lease *lease,
                                   struct hf_error *err);
/* What became of the run. The caller has set ours.exit_code and output; it took until now. */
enum hf_status hf__once_write_end(struct hf__once_work *work, struct hf_lease *lease,
                                  enum hf_once_ending ending, struct hf_error *err);
/* Whether there is to be another attempt after a run that was put on record with that ending. */
bool hf__once_tries_again(const struct hf__once_work *work, enum hf_once_ending ending);

/* In words: once_text.c */

/* "2026-11-17 03:00:02 UTC". */
char *hf__once_time(char out[HF__ONCE_TIME_SIZE], int64_t ms);
/* "report, slot 2026-11-17: done by LABEL, began ..., took 4m12s": one line about a record (NULL:
 * there is none). slot is "ever" where there are no periods. */
void hf__once_sentence(char *out, size_t size, const char *key, const char *slot,
                       const struct hf__once_record *record);
/* "--per 1d --at 03:00 --tz Europe/Berlin", or "no --per". */
char *hf__once_settings_text(char *out, size_t size, const struct hf__once_settings *settings);

/* What a program holds: once.c, once_open.c */
struct hf_once {
    struct hf__once_work work; /* work.store: with a reference */
    struct hf__fork_mark mark; /* the store's; outlives it in a forked child */
    struct hf_acquire_options options;
    int64_t until_ns; /* of the wait; 0: none at all */
    enum hf_once_outcome outcome;
    struct hf_lease *lease; /* NULL unless it is HF_ONCE_RUN */
    bool ran;               /* the work, in a turn before: what follows is a retry of ours */
    bool warned;            /* that the store may forget what is on record */
    char name[HF_NAME_MAX + 1];
    char sentence[HF__ONCE_SENTENCE_SIZE];
    struct hf_once_record shown;
};

/* Puts what is known into sentence and shown. */
void hf__once_show(struct hf_once *once);

#endif /* HF_CLIENT_ONCE_H */
