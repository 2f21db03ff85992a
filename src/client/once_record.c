/* once_record.c - what is on record about a slot.
 *
 * The slot comes from the store's clock, which comes with the answer. So the first question is
 * about the slot that our own clock means; only if the store's means another is a second asked. */
#include "base/base.h"
#include "client/client.h"
#include "client/once.h"

#include <holdfast/record.h>
#include <stdio.h>
#include <string.h>

static void take_in(struct hf__once_found *found, const struct hf_record *record)
{
    found->there = true;
    found->written_ms = record->written_ms;
    found->until_ms = record->until_ms;
    found->reading = HF__ONCE_NONSENSE;
    if (record->value_len <= HF__ONCE_TEXT_MAX) {
        memcpy(found->text, record->value, record->value_len);
        found->text[record->value_len] = '\0';
        found->reading = hf__once_read(&found->record, found->text, record->value_len);
    }
}

enum hf_status hf__once_get(struct hf_store *store, const char *name, const char *key,
                            struct hf__once_found *found, struct hf_error *err)
{
    struct hf_record *record;
    enum hf_status status;

    found->there = false;
    found->now_ms = 0;
    status = hf_record_get(store, name, key, &record, &found->now_ms, err);
    if (status != HF_OK)
        return status;
    if (record != NULL)
        take_in(found, record);
    hf_record_free(record);
    if (found->now_ms < 0 || found->now_ms > HF__CLOCK_MAX_MS / 2)
        return hf__fail_lock(err, HF_CORRUPT, name, hf_store_url(store),
                             ": the clock of the store makes no sense");
    if (found->there && found->reading == HF__ONCE_NEWER)
        return hf__fail_lock(err, HF_CORRUPT, name, hf_store_url(store),
                             ": record \"%s\" was written by a newer holdfast", key);
    if (found->there && found->reading != HF__ONCE_READ)
        return hf__fail_lock(err, HF_CORRUPT, name, hf_store_url(store),
                             ": record \"%s\" makes no sense", key);
    return HF_OK;
}

void hf__once_slot_key(char out[HF__ONCE_KEY_SIZE], const char *slot)
{
    (void)snprintf(out, HF__ONCE_KEY_SIZE, "%s%s", HF__ONCE_SLOT_PREFIX, slot);
}

/* The slot that was meant when we were started, however long the store was down since. */
static void fix_slot(struct hf__once_work *work)
{
    int64_t ago_ms = (hf__now_ns() - work->began_ns) / HF__NS_PER_MS;
    int64_t began_ms = work->found.now_ms > ago_ms ? work->found.now_ms - ago_ms : 0;

    work->slot = hf__slot_meant(&work->plan.schedule, began_ms);
    work->on_edge = hf__slot_on_edge(&work->plan.schedule, began_ms);
    work->slot_known = true;
    hf__once_slot_key(work->key, work->slot.name);
}

bool hf__once_edge(struct hf__once_work *work, char *out, size_t size)
{
    char near[32];
    bool on_edge = work->on_edge;

    work->on_edge = false;
    if (on_edge)
        (void)snprintf(
            out, size,
            "\"%s\" was started close to the moment from which the next slot is meant, %s "
            "before the border: servers whose clocks differ a little may mean different slots; "
            "start it at another time, or choose another --slack",
            work->name, hf__format_duration(near, sizeof near, work->plan.schedule.slack_ms));
    return on_edge;
}

static enum hf_status read_slot(struct hf__once_work *work, struct hf_error *err)
{
    struct hf_store *store = work->store;
    const char *name = work->name;
    char guess[HF__ONCE_KEY_SIZE];
    enum hf_status status;

    if (work->slot_known)
        return hf__once_get(store, name, work->key, &work->found, err);
    hf__once_slot_key(guess, hf__slot_meant(&work->plan.schedule, work->guess_ms).name);
    status = hf__once_get(store, name, guess, &work->found, err);
    if (status != HF_OK && status != HF_CORRUPT)
        return status;
    fix_slot(work);
    if (strcmp(guess, work->key) != 0)
        status = hf__once_get(store, name, work->key, &work->found, err);
    return status;
}

/* The slot may be from before the settings of the key were changed, and have the name that it has
 * with ours: it is the same slot then. */
static enum hf_status check_settings(struct hf__once_work *work, struct hf_error *err)
{
    struct hf_store *store = work->store;
    const char *name = work->name;
    struct hf__once_settings known = work->found.record.settings;
    enum hf_status status;

    if (!work->found.there || hf__once_settings_equal(&known, &work->plan.settings))
        return HF_OK;
    status = hf__once_get(store, name, HF__ONCE_SETTINGS_KEY, &work->found, err);
    if (status == HF_OK && work->found.there)
        known = work->found.record.settings;
    if (status == HF_OK)
        status = hf__once_same_settings(work, &known, err);
    return status == HF_OK ? hf__once_get(store, name, work->key, &work->found, err) : status;
}

enum hf_status hf__once_read_record(struct hf__once_work *work, struct hf_error *err)
{
    enum hf_status status = read_slot(work, err);

    if (status == HF_OK)
        status = check_settings(work, err);
    if (status != HF_OK)
        return status;
    if (!work->was_read && work->plan.settings.period_ms == 0 && work->found.there &&
        work->found.record.state == HF__ONCE_FAILED)
        work->failed_before = work->found.record.token;
    work->was_read = true;
    return HF_OK;
}

enum hf_status hf__once_read_waiting(struct hf__once_work *work, int64_t until_ns,
                                     const struct hf_open_options *waiting, struct hf_error *err)
{
    struct hf__wait wait;
    enum hf_status status;
    int64_t asked_ns;

    hf__wait_init(&wait, until_ns);
    do {
        asked_ns = hf__now_ns();
        status = hf__once_read_record(work, err);
    } while (hf__wait_go_on(&wait, waiting, asked_ns, &status, err));
    return status;
}

enum hf_status hf__once_same_settings(const struct hf__once_work *work,
                                      const struct hf__once_settings *found, struct hf_error *err)
{
    char theirs[128], ours[128];

    if (hf__once_settings_equal(found, &work->plan.settings))
        return HF_OK;
    return hf__fail(
        err, HF_INVALID,
        "\"%s\" is on record with %s, and was started with %s; use another KEY, or \"once "
        "--clear\" with the new ones",
        work->name, hf__once_settings_text(theirs, sizeof theirs, found),
        hf__once_settings_text(ours, sizeof ours, &work->plan.settings));
}

bool hf__once_came_after(const struct hf__once_work *work)
{
    return work->found.there && work->found.record.state == HF__ONCE_FAILED &&
           work->failed_before == work->found.record.token;
}

bool hf__once_not_started(const struct hf__once_work *work)
{
    return work->found.there && work->found.record.state == HF__ONCE_RUNNING &&
           work->not_started == work->found.record.token;
}

const struct hf__once_record *hf__once_on_record(const struct hf__once_work *work)
{
    return work->found.there ? &work->found.record : NULL;
}

enum hf__once_next hf__once_next(const struct hf__once_work *work, bool holding, int64_t *until_ms)
{
    const struct hf__once_case now = {.record = hf__once_on_record(work),
                                      .holding = holding,
                                      .now_ms = work->found.now_ms,
                                      .slot_start_ms = work->slot.start_ms,
                                      .came_after = hf__once_came_after(work),
                                      .not_started = hf__once_not_started(work)};

    return hf__once_decide(&now, &work->plan.rules, until_ms);
}
