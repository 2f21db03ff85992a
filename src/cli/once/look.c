/* look.c - what is on record about a slot.
 *
 * The slot comes from the store's clock, which comes with the answer. So the first question is
 * about the slot that our own clock means; only if the store's means another is a second asked. */
#include "cli/once/once.h"

#include "base/base.h"
#include "core/wait.h"

#include <string.h>

static void take_in(struct once_found *found, const struct hf_record *record)
{
    found->there = true;
    found->written_ms = record->written_ms;
    found->until_ms = record->until_ms;
    found->reading = HF__ONCE_NONSENSE;
    if (record->value_len <= sizeof found->text) {
        memcpy(found->text, record->value, record->value_len);
        found->reading = hf__once_read(&found->record, found->text, record->value_len);
    }
}

enum hf_status once_read(struct hf_store *store, const char *name, const char *key,
                         struct once_found *found, struct hf_error *err)
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

void once_slot_key(char out[ONCE_KEY_SIZE], const char *slot)
{
    (void)snprintf(out, ONCE_KEY_SIZE, "%s%s", ONCE_SLOT_PREFIX, slot);
}

/* The slot that was meant when we were started, however long the store was down since. */
static void fix_slot(struct once *once)
{
    int64_t ago_ms = (hf__now_ns() - once->began_ns) / HF__NS_PER_MS;
    int64_t began_ms = once->found.now_ms > ago_ms ? once->found.now_ms - ago_ms : 0;
    char near[32];

    once->slot = hf__slot_meant(&once->schedule, began_ms);
    once->slot_known = true;
    once_slot_key(once->key, once->slot.name);
    if (hf__slot_on_edge(&once->schedule, began_ms))
        cli_stderr_say_now(
            once->job.writer,
            "warning: \"%s\" was started close to the moment from which the next slot is meant, %s "
            "before the border: servers whose clocks differ a little may mean different slots; "
            "start it at another time, or choose another --slack",
            once->ask.run.name, hf__format_duration(near, sizeof near, once->schedule.slack_ms));
}

static enum hf_status read_slot(struct once *once, struct hf_error *err)
{
    struct hf_store *store = once->job.store;
    const char *name = once->ask.run.name;
    char guess[ONCE_KEY_SIZE];
    enum hf_status status;

    if (once->slot_known)
        return once_read(store, name, once->key, &once->found, err);
    once_slot_key(guess, hf__slot_meant(&once->schedule, once->guess_ms).name);
    status = once_read(store, name, guess, &once->found, err);
    if (status != HF_OK && status != HF_CORRUPT)
        return status;
    fix_slot(once);
    if (strcmp(guess, once->key) != 0)
        status = once_read(store, name, once->key, &once->found, err);
    return status;
}

/* The slot may be from before the settings of the key were changed, and have the name that it has
 * with ours: it is the same slot then. */
static enum hf_status check_settings(struct once *once, struct hf_error *err)
{
    struct hf_store *store = once->job.store;
    const char *name = once->ask.run.name;
    struct hf__once_settings known = once->found.record.settings;
    enum hf_status status;

    if (!once->found.there || hf__once_settings_equal(&known, &once->settings))
        return HF_OK;
    status = once_read(store, name, ONCE_SETTINGS_KEY, &once->found, err);
    if (status == HF_OK && once->found.there)
        known = once->found.record.settings;
    if (status == HF_OK)
        status = once_same_settings(once, &known, err);
    return status == HF_OK ? once_read(store, name, once->key, &once->found, err) : status;
}

enum hf_status once_look(struct once *once, struct hf_error *err)
{
    struct take *take = &once->job.take;
    struct hf__wait wait;
    enum hf_status status;
    int64_t asked_ns;

    hf__wait_init(&wait, take->until_ns);
    do {
        asked_ns = hf__now_ns();
        status = read_slot(once, err);
        if (status == HF_OK)
            status = check_settings(once, err);
    } while (take_wait_out(take, &wait, asked_ns, &status, err));
    take->trouble = HF_OK;
    return status;
}

enum hf_status once_same_settings(const struct once *once, const struct hf__once_settings *found,
                                  struct hf_error *err)
{
    char theirs[128], ours[128];

    if (hf__once_settings_equal(found, &once->settings))
        return HF_OK;
    return hf__fail(
        err, HF_INVALID,
        "\"%s\" is on record with %s, and was started with %s; use another KEY, or \"once "
        "--clear\" with the new ones",
        once->ask.run.name, once_settings_text(theirs, sizeof theirs, found),
        once_settings_text(ours, sizeof ours, &once->settings));
}
