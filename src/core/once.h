/* once.h - what `holdfast once` writes on record about a slot, and what a record means for whoever
 * comes next.
 *
 * Pure, as lease.h is. A record is text, for people too:
 *
 *     holdfast-once 1
 *     state done
 *     by web1/4711/report.sh
 *     ...
 *     output 12
 *
 *     what CMD said
 *
 * A reader must expect anything: names it does not know are passed over, and anything else that is
 * not as it should be makes the record unreadable. */
#ifndef HF_CORE_ONCE_H
#define HF_CORE_ONCE_H

#include <holdfast.h>

enum {
    HF__ONCE_OUTPUT_MAX = 32768,                    /* bytes of what CMD said, its end */
    HF__ONCE_TEXT_MAX = HF__ONCE_OUTPUT_MAX + 2048, /* bytes of a whole record */
    HF__ONCE_ZONE_MAX = 64,
    HF__ONCE_NOTE_MAX = 256,
    HF__ONCE_SLOT_MAX = 32
};

/* In the order of the words in once.c. */
enum hf__once_state {
    HF__ONCE_RUNNING,
    HF__ONCE_DONE,
    HF__ONCE_FAILED,
    HF__ONCE_TOO_LATE,
    HF__ONCE_HELD,    /* a run was begun and never ended: a person has to say what that means */
    HF__ONCE_CLEARED, /* and has said it; the slot may be run */
    HF__ONCE_SETTINGS /* of the key, under a record of its own */
};
#define HF__ONCE_STATES 7

/* What has to be the same for everybody who uses the key. */
struct hf__once_settings {
    int64_t period_ms; /* 0: none */
    char at[8];        /* "03:00"; "": not made of dates */
    char zone[HF__ONCE_ZONE_MAX + 1];
};

struct hf__once_record {
    enum hf__once_state state;
    struct hf__once_settings settings;
    char by[HF_LABEL_MAX + 1];
    uint64_t token;
    int64_t since_ms;                 /* the run began, by the store's clock */
    int64_t took_ms;                  /* how long it took */
    uint64_t exit_code;               /* of CMD, as `run` would have it */
    uint64_t attempts;                /* runs that were begun, this one too */
    uint64_t failures;                /* of those, the ones that CMD itself failed in */
    int64_t first_ms;                 /* settings: when the first slot began */
    char note[HF__ONCE_NOTE_MAX + 1]; /* why it was held, or cleared */
    const char *output;               /* within the text it was read from */
    size_t output_len;
};

/* What comes of reading one. */
enum hf__once_reading { HF__ONCE_READ, HF__ONCE_NEWER, HF__ONCE_NONSENSE };

/* Writes it; returns its length, which is at most HF__ONCE_TEXT_MAX, the size of out. Of output at
 * most HF__ONCE_OUTPUT_MAX bytes are taken; control characters in texts become '?'. */
size_t hf__once_write(char *out, const struct hf__once_record *record);
enum hf__once_reading hf__once_read(struct hf__once_record *record, const char *text, size_t len);
/* "done". */
const char *hf__once_state_text(enum hf__once_state state);
bool hf__once_settings_equal(const struct hf__once_settings *a, const struct hf__once_settings *b);

struct hf__once_rules {
    uint64_t retries;
    int64_t retry_after_ms;
    int64_t start_by_ms; /* after the slot's start; INT64_MAX: no limit */
    bool hold_crashed;   /* --on-crash hold */
};

struct hf__once_case {
    const struct hf__once_record *record; /* NULL: there is none */
    bool holding;                         /* we have the lock */
    int64_t now_ms;                       /* the store's clock */
    int64_t slot_start_ms;
    /* The record is of a failure that nobody tries to mend any more, and was there when we came: of
     * a key without a period we are the next to try. */
    bool came_after;
    /* The record is of a run of ours that was not started after all. */
    bool not_started;
};

enum hf__once_next {
    HF__ONCE_GO,         /* take the lock and ask again; or, with it in hand, run CMD */
    HF__ONCE_SAY_DONE,   /* nothing is left to do */
    HF__ONCE_SAY_FAILED, /* for good */
    HF__ONCE_SAY_HELD,   /* until a person clears it */
    HF__ONCE_SAY_LATE,   /* too late, and that is on record */
    HF__ONCE_SLEEP,      /* without the lock, until *until_ms: the next attempt is due then */
    HF__ONCE_WRITE_HELD, /* put that on record: a run crashed */
    HF__ONCE_WRITE_LATE  /* put that on record: it is too late to start */
};

enum hf__once_next hf__once_decide(const struct hf__once_case *now,
                                   const struct hf__once_rules *rules, int64_t *until_ms);
/* What a run that begins puts on record, after what was there (NULL: nothing). The caller adds who,
 * token and time. */
struct hf__once_record hf__once_begun(const struct hf__once_record *before,
                                      const struct hf__once_settings *settings);

#endif /* HF_CORE_ONCE_H */
