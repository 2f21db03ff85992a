/* once_open.c - a handle of hf_once_*: from the options to a plan, and what is known about it. */
#include "client/client.h"
#include "client/once.h"

#include <holdfast/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A caller built against an older header knows fewer options. */
static enum hf_status copy_options(const struct hf_once_options *given, struct hf_once_options *out,
                                   struct hf_error *err)
{
    memset(out, 0, sizeof *out);
    if (given == NULL)
        return HF_OK;
    if (given->size == 0)
        return hf__fail(err, HF_INVALID, "options.size must be sizeof(struct hf_once_options)");
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->per_ms < 0 || out->start_by_ms < 0 || out->keep_ms < 0 || out->ago_ms < 0)
        return hf__fail(err, HF_INVALID, "per_ms, start_by_ms, keep_ms and ago_ms: not below 0");
    if (out->ago_ms > HF_RECORD_KEEP_MAX_MS)
        return hf__fail(err, HF_INVALID, "ago_ms: at most 100 years");
    return HF_OK;
}

static enum hf_status flawed(const struct hf_once_options *o, enum hf__once_flaw flaw,
                             struct hf_error *err)
{
    switch (flaw) {
    case HF__ONCE_SOUND:
        break;
    case HF__ONCE_RETRY_AFTER:
        return hf__fail(err, HF_INVALID, "retry_after_ms: not below 0, and at most 100 years");
    case HF__ONCE_NEEDS_PERIOD:
        return hf__fail(err, HF_INVALID, "at, tz, slack_ms and start_by_ms need per_ms");
    case HF__ONCE_PERIOD:
        return hf__fail(err, HF_INVALID,
                        "per_ms: a period is whole days, or divides one into whole seconds");
    case HF__ONCE_AT_NEEDS_DAYS:
        return hf__fail(err, HF_INVALID,
                        "at and tz are for periods of whole days; shorter ones "
                        "begin with the day in UTC");
    case HF__ONCE_AT:
        return hf__fail(err, HF_INVALID, "at: \"%.40s\" is not a time of day such as 03:00", o->at);
    case HF__ONCE_SLACK_LONG:
        return hf__fail(err, HF_INVALID, "slack_ms: at most half a period");
    case HF__ONCE_START_BY_LONG:
        return hf__fail(err, HF_INVALID, "start_by_ms: at most 50 years");
    case HF__ONCE_KEEP_RANGE:
        return hf__fail(err, HF_INVALID, "keep_ms: at most 100 years");
    case HF__ONCE_KEEP_SHORT:
        return hf__fail(err, HF_INVALID,
                        "keep_ms: a slot could run twice; it has to be longer "
                        "than start_by_ms and slack_ms together");
    }
    return HF_OK;
}

static enum hf_status make_plan(struct hf__once_work *work, const struct hf_once_options *o,
                                struct hf_error *err)
{
    const struct hf__once_request request = {.periodic = o->per_ms != 0,
                                             .per_ms = o->per_ms,
                                             .at = o->at,
                                             .tz = o->tz,
                                             .slack_ms = o->slack_ms == 0  ? -1
                                                         : o->slack_ms < 0 ? 0
                                                                           : o->slack_ms,
                                             .start_by_ms =
                                                 o->start_by_ms > 0 ? o->start_by_ms : -1,
                                             .keep_ms = o->keep_ms > 0 ? o->keep_ms : -1,
                                             .retries = o->retries,
                                             .retry_after_ms = o->retry_after_ms,
                                             .hold_crashed = o->hold_crashed};
    enum hf_status status = flawed(o, hf__once_plan(&work->plan, &request), err);

    if (status != HF_OK)
        return status;
    return hf__once_zone("tz", hf__once_zone_of(&request), &work->plan.schedule.zone,
                         &work->zone_data, err);
}

/* What needs no memory, and the lock's part of the options. */
static enum hf_status check(struct hf_store *store, const char *key,
                            const struct hf_once_options *o, struct hf_acquire_options *acquire,
                            struct hf_error *err)
{
    *acquire = (struct hf_acquire_options){.size = sizeof *acquire,
                                           .ttl_ms = o->ttl_ms,
                                           .cancel_fd = o->cancel_fd,
                                           .on_lost = o->on_lost,
                                           .on_renewed = o->on_renewed,
                                           .on_trouble = o->on_trouble,
                                           .data = o->data};
    if (key == NULL || !hf__name_valid(key))
        return hf__bad_name(err);
    if ((hf_store_features(store) & HF_FEATURE_RECORDS) == 0)
        return hf__fail_lock(err, HF_UNSUPPORTED, key, store->url,
                             ": this kind of store keeps no records, see \"holdfast help stores\"");
    return hf__check_lease(store, key, acquire, err);
}

static enum hf_status fill_in(struct hf_once *once, const struct hf_once_options *o,
                              struct hf_error *err)
{
    struct hf__once_work *work = &once->work;
    struct hf_store *store = work->store;

    work->name = once->name;
    work->began_ns = hf__now_ns() - hf__ms_to_ns(o->ago_ms);
    work->guess_ms = hf__wall_us() / 1000 - o->ago_ms;
    if (work->guess_ms < 0)
        work->guess_ms = 0; /* no clock of a store is believed before that */
    hf__copy_printable(work->label, sizeof work->label, o->label != NULL ? o->label : store->label);
    once->mark = store->mark;
    once->options.label = work->label;
    once->until_ns = hf__wait_begin(o->wait_ms).until_ns;
    if (o->wait_ms > 0)
        once->until_ns = hf__time_add(work->began_ns, hf__ms_to_ns(o->wait_ms));
    hf__once_show(once);
    return make_plan(work, o, err);
}

enum hf_status hf_once_open(struct hf_store *store, const char *key,
                            const struct hf_once_options *options, struct hf_once **out,
                            struct hf_error *err)
{
    struct hf_acquire_options acquire;
    struct hf_once_options o;
    struct hf_once *once;
    struct hf_error own;
    enum hf_status status;

    *out = NULL;
    if (err == NULL)
        err = &own;
    if ((status = copy_options(options, &o, err)) != HF_OK ||
        (status = hf__store_begin_use(store, err)) != HF_OK)
        return status;
    status = check(store, key, &o, &acquire, err);
    once = status == HF_OK ? calloc(1, sizeof *once) : NULL;
    if (status == HF_OK && once == NULL)
        status = hf__nomem(err);
    if (once != NULL) {
        (void)stpcpy(once->name, key); /* a checked one */
        once->options = acquire;
        once->work.store = store;
        pthread_mutex_lock(&store->lock);
        store->refs++;
        pthread_mutex_unlock(&store->lock);
        status = fill_in(once, &o, err);
    }
    hf__store_end(store);
    if (status == HF_OK)
        *out = once;
    else
        hf_once_close(once);
    return status;
}

void hf_once_close(struct hf_once *once)
{
    if (once == NULL)
        return;
    if (hf_release(once->lease, NULL) != HF_OK)
        once->lease = NULL; /* it is gone all the same, and nobody asks */
    if (!hf__forked(&once->mark)) {
        pthread_mutex_lock(&once->work.store->lock);
        hf__store_unref(once->work.store);
    }
    free(once->work.zone_data);
    free(once);
}

/* After a read that failed the record may be another's, or nonsense. */
static const struct hf__once_record *known(const struct hf__once_work *work)
{
    const struct hf__once_found *found = &work->found;

    return found->there && found->reading == HF__ONCE_READ &&
                   found->record.state != HF__ONCE_SETTINGS
               ? &found->record
               : NULL;
}

void hf__once_show(struct hf_once *once)
{
    const struct hf__once_work *work = &once->work;
    const struct hf__once_record *record = known(work);

    hf__once_sentence(once->sentence, sizeof once->sentence, once->name,
                      work->slot_known ? work->slot.name : HF__SLOT_EVER, record);
    once->shown.size = 0;
    if (record != NULL)
        once->shown = (struct hf_once_record){.size = sizeof once->shown,
                                              .state = hf__once_state_text(record->state),
                                              .by = record->by,
                                              .token = record->token,
                                              .since_ms = record->since_ms,
                                              .took_ms = record->took_ms,
                                              .code = record->exit_code,
                                              .attempts = record->attempts,
                                              .failures = record->failures,
                                              .note = record->note,
                                              .output = record->output,
                                              .output_len = record->output_len};
}

enum hf_once_outcome hf_once_outcome(const struct hf_once *once)
{
    return once->outcome;
}

const char *hf_once_slot(const struct hf_once *once)
{
    return once->work.slot.name;
}

struct hf_lease *hf_once_lease(const struct hf_once *once)
{
    return once->lease;
}

const struct hf_once_record *hf_once_on_record(const struct hf_once *once)
{
    return once->shown.size > 0 ? &once->shown : NULL;
}

const char *hf_once_text(const struct hf_once *once)
{
    return once->sentence;
}
