/* explain.h - the story of one lock: what was seen of it, and the ways of telling it. */
#ifndef HF_CLI_EXPLAIN_H
#define HF_CLI_EXPLAIN_H

#include "cli/say/show.h"
#include "core/explain.h"

#include <holdfast/record.h>
#include <holdfast/waiters.h>

enum {
    EXPLAIN_QUEUE_MAX = 10,  /* waiters that are told of */
    EXPLAIN_RECORDS_MAX = 5, /* records: the last ones */
    EXPLAIN_TIME_SIZE = 40
};

struct explain_waiter {
    char label[HF_LABEL_MAX + 1];
    int64_t waited_ms;
};

struct explain_record {
    char key[HF_RECORD_KEY_MAX + 1];
    uint64_t token;
    int64_t written_ms;
    size_t bytes;
};

/* All that was seen, at one time. */
struct explain_story {
    const char *name;
    const char *store;
    int64_t at_us;        /* our clock */
    struct cli_lock lock; /* text NULL: free, and nobody waits */
    bool queues;          /* who waits stands in a queue, and can be seen */
    bool queue_known;     /* the store tells who they are */
    struct explain_waiter queue[EXPLAIN_QUEUE_MAX];
    size_t queue_count;
    bool records_known; /* the store keeps records, and tells them */
    struct explain_record records[EXPLAIN_RECORDS_MAX]; /* the last one first */
    size_t record_count;
    bool break_known;                /* the store tells of breaks that are over ... */
    struct hf_revocation last_break; /* ... and this is the last one; at_ms 0: none */
    bool quarantine;
    int64_t quarantine_ms;
    char quarantine_why[HF_ERROR_TEXT_SIZE];
    struct hf__explained explained;
};

/* see.c: looks at the lock. HF_OK; else *err says what is in the way. Ends with explain_clear. */
enum hf_status explain_see(struct hf_store *store, const char *name, struct explain_story *out,
                           struct hf_error *err);
void explain_clear(struct explain_story *story);

/* tell.c */
void explain_print(FILE *out, const struct explain_story *story);
/* json.c: one line. */
void explain_json(FILE *out, const struct explain_story *story);
/* "2026-11-18T00:01:02Z"; "" if it is not a time. Returns out. */
const char *explain_time(char out[EXPLAIN_TIME_SIZE], int64_t ms);
/* When the present hold was taken, and when its token was given; 0: not known. */
int64_t explain_since_ms(const struct explain_story *story);
int64_t explain_token_ms(const struct explain_story *story);

#endif /* HF_CLI_EXPLAIN_H */
