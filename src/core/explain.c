/* explain.c - what one can tell from the sight of a lock. */
#include "core/explain.h"

#define RENEWAL_MAX_MS 10000 /* of the keeper, whatever the ttl */
#define SLACK_MS       1000  /* stores that count in seconds, requests that take time */
#define FIRST_CLOCK_US 1000000000000000LL    /* 2001: no revision has come so far */
#define AHEAD_US       (86400LL * 1000000LL) /* of our clock, that a token may be */

static enum hf__seems seems(const struct hf__sight *sight);

int64_t hf__renewal_ms(uint32_t ttl_ms)
{
    return ttl_ms / 3 < RENEWAL_MAX_MS ? ttl_ms / 3 : RENEWAL_MAX_MS;
}

static struct hf__explained explain_free(const struct hf__sight *sight)
{
    struct hf__explained out = {.seems = HF__SEEMS_NOBODY, .next = HF__NEXT_GRANT};

    if (sight->quarantine) {
        out.next = HF__NEXT_QUARANTINE;
        out.next_ms = sight->quarantine_ms;
    } else if (sight->waiters > 0) {
        out.next = HF__NEXT_WAITER;
    }
    return out;
}

struct hf__explained hf__explain(const struct hf__sight *sight)
{
    struct hf__explained out = {.seems = seems(sight), .next_ms = sight->remaining_ms};

    if (!sight->held)
        return explain_free(sight);
    if (sight->endless) {
        out.next = HF__NEXT_NEVER;
        out.next_ms = -1;
    } else if (sight->broken) {
        out.next = HF__NEXT_RELEASE;
    } else if (out.seems == HF__SEEMS_ALIVE) {
        out.next = HF__NEXT_RENEWAL;
        out.next_ms = hf__renewal_ms(sight->ttl_ms) - sight->renewed_ago_ms;
        if (out.next_ms < 0)
            out.next_ms = 0;
    } else {
        out.next = sight->remaining_ms < 0 ? HF__NEXT_UNKNOWN : HF__NEXT_END;
    }
    return out;
}

static enum hf__seems seems(const struct hf__sight *sight)
{
    int64_t renewal_ms = hf__renewal_ms(sight->ttl_ms);

    if (!sight->held)
        return HF__SEEMS_NOBODY;
    if (sight->detached)
        return HF__SEEMS_DETACHED;
    if (sight->foreign || sight->ttl_ms == 0 || sight->renewed_ago_ms < 0)
        return HF__SEEMS_UNKNOWN;
    return sight->renewed_ago_ms <= renewal_ms + renewal_ms / 2 + SLACK_MS ? HF__SEEMS_ALIVE
                                                                           : HF__SEEMS_LATE;
}

bool hf__token_time(uint64_t token, int64_t now_us, int64_t *at_us)
{
    if (token < (uint64_t)FIRST_CLOCK_US || token > (uint64_t)(now_us + AHEAD_US))
        return false;
    *at_us = (int64_t)token;
    return true;
}
