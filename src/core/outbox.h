/* outbox.h - what the relay of an outbox decides: which message is sent next, what an answer means,
 * when one that failed is tried again, and what waits behind it. Pure: the caller has the clock,
 * the dice and the database. */
#ifndef HF_CORE_OUTBOX_H
#define HF_CORE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF__OUTBOX_UID_MAX = 36,            /* bytes of a uid */
    HF__OUTBOX_FIRST_MS = 1000,         /* the pause after the first failure */
    HF__OUTBOX_MOST_MS = 5 * 60 * 1000, /* and after any */
    HF__OUTBOX_ASKED_MAX_MS = 86400000  /* a receiver that asks for more gets a day */
};

/* What an answer means. */
enum hf__outbox_verdict {
    HF__OUTBOX_DELIVERED,
    HF__OUTBOX_RETRY, /* again later, whatever it was: a 404 may be a deployment */
    HF__OUTBOX_STALE  /* the receiver has seen a later relay: this one has to end */
};
enum hf__outbox_verdict hf__outbox_http_verdict(long code);

/* What becomes of a message that failed. */
struct hf__outbox_mark {
    unsigned attempts;
    int64_t delay_ms; /* until the next; < 0: there is none, it is dead */
};
/* attempts: that failed before; most: with that many it is dead. asked_ms: the pause that the
 * receiver asked for, < 0 if it did not; else it doubles from a second to five minutes. dice: any
 * random number. */
struct hf__outbox_mark hf__outbox_failed(unsigned attempts, uint64_t most, int64_t asked_ms,
                                         uint32_t dice);

/* A line that a command answers: "ok UID", or "retry UID [DELAY]". */
enum hf__outbox_word { HF__OUTBOX_SAID_OK, HF__OUTBOX_SAID_RETRY, HF__OUTBOX_SAID_NOTHING };
struct hf__outbox_said {
    enum hf__outbox_word word; /* NOTHING: it is no such line */
    char uid[HF__OUTBOX_UID_MAX + 1];
    int64_t asked_ms; /* < 0: no delay was said */
};
void hf__outbox_read_line(const char *line, struct hf__outbox_said *out);
/* 1 to HF__OUTBOX_UID_MAX of 0-9, a-f and '-'. */
bool hf__outbox_uid_valid(const char *uid);

/* The messages that were fetched, in the order of their ids. */
enum hf__outbox_step {
    HF__OUTBOX_WAITING,
    HF__OUTBOX_SENT,
    HF__OUTBOX_DONE, /* delivered */
    HF__OUTBOX_FAILED
};
struct hf__outbox_item {
    const char *key;
    uint64_t id;
    uint64_t blocker;  /* a message of its key that failed, and is not here; 0: none */
    unsigned attempts; /* that failed */
    enum hf__outbox_step step;
    int before; /* the one before it of the same key; -1: none. Set by hf__outbox_link */
};

/* Finds out which follow each other. table has room for table_size numbers, a power of two and at
 * least twice the count. */
void hf__outbox_link(struct hf__outbox_item *items, size_t count, int *table, size_t table_size);

/* The first from `from` on that may be sent now, or -1. One key at a time: what is before it was
 * delivered. Behind one that had failed before nothing of the same key is sent: what is parked
 * there comes first, and is not among these. */
int hf__outbox_next(const struct hf__outbox_item *items, size_t count, size_t from);

/* The message behind which item has to be parked: one that failed, just now or earlier. 0: it waits
 * for nobody who failed. */
uint64_t hf__outbox_parked_by(const struct hf__outbox_item *items, size_t item);

#endif /* HF_CORE_OUTBOX_H */
