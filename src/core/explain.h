/* explain.h - what one can tell from the sight of a lock: whether its holder seems alive, and what
 * happens next. Pure. */
#ifndef HF_CORE_EXPLAIN_H
#define HF_CORE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

/* What can be seen. */
struct hf__sight {
    bool held;
    bool detached;
    bool foreign;
    bool endless; /* no ttl */
    bool broken;
    bool quarantine; /* the store grants nothing */
    int64_t quarantine_ms;
    uint32_t ttl_ms;        /* 0: not known */
    int64_t remaining_ms;   /* < 0: not known */
    int64_t renewed_ago_ms; /* < 0: not known */
    uint64_t waiters;
};

/* How the holder seems to be. */
enum hf__seems {
    HF__SEEMS_NOBODY,  /* there is none */
    HF__SEEMS_ALIVE,   /* it has renewed when a keeper does */
    HF__SEEMS_LATE,    /* it should have renewed by now */
    HF__SEEMS_UNKNOWN, /* nothing tells */
    HF__SEEMS_DETACHED /* no process stands behind it */
};

enum hf__next {
    HF__NEXT_GRANT,      /* whoever asks gets it */
    HF__NEXT_WAITER,     /* it is on its way to the next in line */
    HF__NEXT_QUARANTINE, /* nobody gets it before the quarantine is over */
    HF__NEXT_RENEWAL,    /* its holder renews it, or it ends */
    HF__NEXT_END,        /* it ends, unless somebody renews it */
    HF__NEXT_RELEASE,    /* it was broken: it ends when it is released, or else by its time */
    HF__NEXT_NEVER,      /* nothing, ever, by itself */
    HF__NEXT_UNKNOWN     /* when it ends cannot be seen */
};

struct hf__explained {
    enum hf__seems seems;
    enum hf__next next;
    int64_t next_ms; /* in how long at the most; < 0: not known. The renewal: when it is due */
};

/* How often a keeper renews a hold. */
int64_t hf__renewal_ms(uint32_t ttl_ms);
struct hf__explained hf__explain(const struct hf__sight *sight);

/* When a token was given, if it is made from a clock: microseconds since 1970. False: it is a
 * number of another kind, a revision for instance. */
bool hf__token_time(uint64_t token, int64_t now_us, int64_t *at_us);

#endif /* HF_CORE_EXPLAIN_H */
