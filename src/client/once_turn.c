/* once_turn.c - what is put on record with the lock of the work in hand. */
#include "base/base.h"
#include "client/client.h"
#include "client/once.h"

#include <string.h>

/* Whether the record that a run has begun may be lost when the power fails. The run itself is over
 * then, and its slot is run again, whether this record is found or the one before it, or none: the
 * one before still counts the failures, is no end or is known to be older than one
 * (hf__once_came_after), and what a person cleared in it is cleared; settings that are missing are
 * written by the next run. Only the number of attempts is too small by one. With --on-crash hold
 * everything rests on this record. (Where some callers hold and others rerun, a slot was never safe
 * from those that rerun.) */
static bool is_forgettable(const struct hf__once_work *work)
{
    return work->ours.state == HF__ONCE_RUNNING && !work->plan.rules.hold_crashed;
}

static struct hf_record_write settings_of(struct hf__once_work *work)
{
    const struct hf__once_record settings = {.state = HF__ONCE_SETTINGS,
                                             .settings = work->plan.settings,
                                             .since_ms = -1,
                                             .took_ms = -1,
                                             .first_ms = work->slot.start_ms};

    return (struct hf_record_write){.key = HF__ONCE_SETTINGS_KEY,
                                    .value = work->settings_text,
                                    .value_len = hf__once_write(work->settings_text, &settings)};
}

/* The settings of a key are put on record with its first slot. */
static enum hf_status put(struct hf__once_work *work, struct hf_lease *lease, int64_t keep_ms,
                          struct hf_error *err)
{
    struct hf__record_task task = {.write = {.key = work->key,
                                             .value = work->text,
                                             .value_len = hf__once_write(work->text, &work->ours),
                                             .keep_ms = keep_ms},
                                   .forgettable = is_forgettable(work)};
    struct hf_record_write settings;
    enum hf_status status;

    if (work->settings_due) {
        settings = settings_of(work);
        task.first = &settings;
    }
    status = hf__record_write(lease, &task, err);
    if (status == HF_OK)
        work->settings_due = false;
    return status;
}

/* Everybody's settings of the key have to be the same. */
static enum hf_status check_settings(struct hf__once_work *work, struct hf_error *err)
{
    enum hf_status status =
        hf__once_get(work->store, work->name, HF__ONCE_SETTINGS_KEY, &work->found, err);

    work->settings_due = status == HF_OK && !work->found.there;
    if (status == HF_OK && work->found.there)
        status = hf__once_same_settings(work, &work->found.record.settings, err);
    return status;
}

enum hf_status hf__once_read_again(struct hf__once_work *work, struct hf_error *err)
{
    enum hf_status status = check_settings(work, err);

    if (status != HF_OK)
        return status;
    return hf__once_get(work->store, work->name, work->key, &work->found, err);
}

static void sign(struct hf__once_work *work, const struct hf_lease *lease)
{
    memcpy(work->ours.by, work->label, sizeof work->ours.by);
    work->ours.token = hf_lease_token(lease);
}

enum hf_status hf__once_write_running(struct hf__once_work *work, struct hf_lease *lease,
                                      struct hf_error *err)
{
    enum hf_status status;

    work->ours = hf__once_begun(hf__once_on_record(work), &work->plan.settings);
    if (hf__once_came_after(work) && work->ours.failures > work->plan.rules.retries)
        work->ours.failures = 0;
    work->ours.since_ms = work->found.now_ms;
    sign(work, lease);
    work->not_started = work->ours.token;
    status = put(work, lease, 0, err);
    work->started_ns = hf__now_ns();
    return status;
}

enum hf_status hf__once_write_held(struct hf__once_work *work, struct hf_lease *lease,
                                   struct hf_error *err)
{
    work->ours = work->found.record;
    work->ours.state = HF__ONCE_HELD;
    return put(work, lease, 0, err);
}

enum hf_status hf__once_write_late(struct hf__once_work *work, struct hf_lease *lease,
                                   struct hf_error *err)
{
    work->ours = hf__once_begun(hf__once_on_record(work), &work->plan.settings);
    work->ours.attempts--;
    work->ours.state = HF__ONCE_TOO_LATE;
    work->ours.since_ms = work->found.now_ms;
    sign(work, lease);
    return put(work, lease, work->plan.keep_ms, err);
}

/* An answer that never came may have been a yes. */
static bool is_on_record(struct hf__once_work *work)
{
    struct hf_error err;
    uint64_t token = work->ours.token;

    return hf__once_get(work->store, work->name, work->key, &work->found, &err) == HF_OK &&
           work->found.there && work->found.record.state == HF__ONCE_DONE &&
           work->found.record.token == token;
}

static enum hf_status write_success(struct hf__once_work *work, struct hf_lease *lease,
                                    struct hf_error *err)
{
    enum hf_status status;

    work->ours.state = HF__ONCE_DONE;
    work->ours.exit_code = 0;
    status = put(work, lease, work->plan.keep_ms, err);
    return status == HF_UNKNOWN && is_on_record(work) ? hf__ok(err) : status;
}

enum hf_status hf__once_write_end(struct hf__once_work *work, struct hf_lease *lease,
                                  enum hf_once_ending ending, struct hf_error *err)
{
    struct hf__once_record *ours = &work->ours;

    if (ending == HF_ONCE_END_SUCCESS)
        return write_success(work, lease, err);
    ours->state = HF__ONCE_FAILED;
    if (ending == HF_ONCE_END_FAILURE)
        ours->failures++;
    if (ending == HF_ONCE_END_CUT_OFF && work->plan.rules.hold_crashed)
        ours->state = HF__ONCE_HELD;
    return put(work, lease, ours->state == HF__ONCE_HELD ? 0 : work->plan.keep_ms, err);
}

bool hf__once_tries_again(const struct hf__once_work *work, enum hf_once_ending ending)
{
    return ending == HF_ONCE_END_FAILURE && work->ours.failures <= work->plan.rules.retries;
}
