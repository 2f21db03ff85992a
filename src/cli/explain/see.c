/* see.c - looks at one lock from all sides that the store has. */
#include "cli/explain/explain.h"

#include "base/base.h"

#include <holdfast/repair.h>
#include <stdlib.h>
#include <string.h>

static bool copy_lock(const struct hf_lock_info *info, void *data)
{
    struct explain_story *story = data;

    (void)cli_lock_copy(&story->lock, info);
    return false;
}

static bool copy_waiter(const struct hf_waiter *waiter, void *data)
{
    struct explain_story *story = data;
    struct explain_waiter *out = &story->queue[story->queue_count++];

    hf__copy_printable(out->label, sizeof out->label, waiter->label);
    out->waited_ms = waiter->waited_ms;
    return story->queue_count < EXPLAIN_QUEUE_MAX;
}

/* The last ones, in order. */
static bool copy_record(const struct hf_record *record, void *data)
{
    struct explain_story *story = data;
    size_t at = story->record_count;

    while (at > 0 && story->records[at - 1].written_ms < record->written_ms)
        at--;
    if (at == EXPLAIN_RECORDS_MAX)
        return true;
    if (story->record_count < EXPLAIN_RECORDS_MAX)
        story->record_count++;
    for (size_t i = story->record_count - 1; i > at; i--)
        story->records[i] = story->records[i - 1];
    story->records[at] = (struct explain_record){
        .token = record->token, .written_ms = record->written_ms, .bytes = record->value_len};
    hf__copy_printable(story->records[at].key, sizeof story->records[at].key, record->key);
    return true;
}

static void judge(struct explain_story *story)
{
    const struct hf_lock_info *info = &story->lock.info;
    struct hf__sight sight = {.remaining_ms = -1,
                              .renewed_ago_ms = -1,
                              .quarantine = story->quarantine,
                              .quarantine_ms = story->quarantine_ms};

    if (story->lock.text != NULL) {
        sight.held = info->held;
        sight.detached = info->detached;
        sight.foreign = info->foreign;
        sight.endless = info->endless;
        sight.broken = info->revocation != NULL;
        sight.ttl_ms = info->ttl_ms;
        sight.remaining_ms = info->remaining_ms;
        sight.waiters = info->waiters;
        if (info->renewed_ms > 0)
            sight.renewed_ago_ms = story->at_us / 1000 - info->renewed_ms;
        if (info->renewed_ms > 0 && sight.renewed_ago_ms < 0)
            sight.renewed_ago_ms = 0; /* by another clock, which is ahead */
    }
    story->explained = hf__explain(&sight);
}

enum hf_status explain_see(struct hf_store *store, const char *name, struct explain_story *out,
                           struct hf_error *err)
{
    struct hf_error why;
    enum hf_status status;

    memset(out, 0, sizeof *out);
    out->name = name;
    out->store = hf_store_url(store);
    status = hf_inspect(store, name, copy_lock, out, err);
    if (status != HF_OK)
        return status;
    out->at_us = hf__wall_us();
    /* The rest is told only if it can be seen. */
    out->queues = (hf_store_features(store) & HF_FEATURE_FAIR) != 0;
    out->queue_known = hf_waiters(store, name, copy_waiter, out, NULL) == HF_OK;
    out->records_known = (hf_store_features(store) & HF_FEATURE_RECORDS) != 0 &&
                         hf_record_list(store, name, NULL, copy_record, out, NULL) == HF_OK;
    out->break_known = hf_last_break(store, name, &out->last_break, NULL) == HF_OK;
    if (out->lock.text != NULL && out->lock.info.held && out->lock.info.revocation != NULL)
        out->last_break = *out->lock.info.revocation;
    out->quarantine = hf_quarantine(store, &why) == HF_QUARANTINE;
    if (out->quarantine) {
        out->quarantine_ms = why.retry_after_ms;
        hf__copy_printable(out->quarantine_why, sizeof out->quarantine_why, why.text);
    }
    judge(out);
    return HF_OK;
}

void explain_clear(struct explain_story *story)
{
    cli_lock_clear(&story->lock);
}

int64_t explain_since_ms(const struct explain_story *story)
{
    const struct hf_lock_info *info = &story->lock.info;

    return story->lock.text != NULL && info->held && info->age_ms >= 0
               ? story->at_us / 1000 - info->age_ms
               : 0;
}

int64_t explain_token_ms(const struct explain_story *story)
{
    int64_t at_us;

    if (story->lock.text == NULL || !story->lock.info.held ||
        !hf__token_time(story->lock.info.token, story->at_us, &at_us))
        return 0;
    return at_us / 1000;
}
