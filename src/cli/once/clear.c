/* clear.c - holdfast once --clear: a person says that a slot may be run again, or that a key has
 * other settings from now on. With the lock in hand, so that nobody is running it. */
#include "cli/once/once.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With the lock in hand, what runs on record is what crashed. */
static bool is_meant(const struct once *once, const struct once_entry *entry)
{
    if (once->ask.slot != NULL)
        return strcmp(entry->slot, once->ask.slot) == 0;
    if (!entry->readable)
        return false;
    return entry->record.state == HF__ONCE_HELD || entry->record.state == HF__ONCE_RUNNING ||
           (entry->record.state == HF__ONCE_FAILED && strcmp(entry->slot, HF__SLOT_EVER) == 0);
}

static enum hf_status put(struct once *once, const char *key, const struct hf__once_record *record,
                          int64_t keep_ms, struct hf_error *err)
{
    size_t len = hf__once_write(once->work.text, record);

    return hf_record_put(once->job.lease, key, once->work.text, len, keep_ms, err);
}

static enum hf_status clear_slot(struct once *once, const struct once_entry *entry,
                                 struct hf_error *err)
{
    struct hf__once_record record = entry->record;
    char key[HF__ONCE_KEY_SIZE];

    if (!entry->readable)
        record = (struct hf__once_record){.settings = once->work.plan.settings, .since_ms = -1};
    record.state = HF__ONCE_CLEARED;
    record.failures = 0;
    record.token = hf_lease_token(once->job.lease);
    (void)snprintf(record.by, sizeof record.by, "%s", once->work.label);
    hf__copy_printable(record.note, sizeof record.note, once->ask.reason);
    hf__once_slot_key(key, entry->slot);
    return put(once, key, &record, 0, err);
}

/* With --per: these are the settings from now on. */
static enum hf_status change_settings(struct once *once, struct hf_error *err)
{
    struct hf__once_record record = {.state = HF__ONCE_SETTINGS,
                                     .settings = once->work.plan.settings,
                                     .since_ms = -1,
                                     .took_ms = -1,
                                     .token = hf_lease_token(once->job.lease)};
    enum hf_status status = hf__once_get(once->job.store, once->ask.run.name, HF__ONCE_SETTINGS_KEY,
                                         &once->work.found, err);

    if (status != HF_OK && status != HF_CORRUPT)
        return status;
    record.first_ms = hf__slot_meant(&once->work.plan.schedule, once->work.found.now_ms).start_ms;
    (void)snprintf(record.by, sizeof record.by, "%s", once->work.label);
    hf__copy_printable(record.note, sizeof record.note, once->ask.reason);
    return put(once, HF__ONCE_SETTINGS_KEY, &record, 0, err);
}

/* A record that is damaged keeps none of the others from being cleared, and is told in the end. */
static int clear_all(struct once *once)
{
    struct once_list list;
    struct hf_error err, damage;
    size_t cleared = 0;
    enum hf_status listed = once_list(once->job.store, once->ask.run.name, &list, &damage);
    enum hf_status status = listed == HF_CORRUPT ? HF_OK : listed;

    for (size_t i = 0; i < list.count && status == HF_OK; i++) {
        if (!is_meant(once, &list.entries[i]))
            continue;
        status = clear_slot(once, &list.entries[i], &err);
        if (status == HF_OK)
            printf("cleared \"%s\", slot %s\n", once->ask.run.name, list.entries[i].slot);
        cleared += status == HF_OK;
    }
    free(list.entries);
    if (status == HF_OK && once->ask.per_given) {
        char text[128];

        status = change_settings(once, &err);
        if (status == HF_OK)
            printf("\"%s\" has %s from now on\n", once->ask.run.name,
                   hf__once_settings_text(text, sizeof text, &once->work.plan.settings));
        cleared += status == HF_OK;
    }
    if (listed != HF_OK || status != HF_OK)
        return cli_fail(listed != HF_OK ? &damage : &err);
    if (cleared == 0)
        cli_error("nothing of \"%s\" is held%s", once->ask.run.name,
                  once->ask.slot != NULL ? ", and there is no such slot on record" : "");
    return cleared > 0 ? 0 : EXIT_HF_NO;
}

int once_clear(struct once *once, const struct cli_context *context)
{
    const struct take_options *given = &once->ask.run.take;
    struct hf_acquire_options options = {.size = sizeof options, .label = given->label};
    struct hf_error err;
    int exit_code = 0;
    struct take us = {.label = given->label, .label_pid = getpid(), .label_cmd = "once"};

    once->job.store = cli_open(context, &exit_code);
    if (once->job.store == NULL)
        return exit_code;
    take_describe(&us, once->work.label, sizeof once->work.label);
    options.label = once->work.label;
    if (given->wait_given)
        options.wait_ms = given->wait_ms;
    if (hf_acquire(once->job.store, once->ask.run.name, &options, &once->job.lease, &err) !=
        HF_OK) {
        exit_code = cli_fail(&err);
    } else {
        exit_code = clear_all(once);
        if (hf_release(once->job.lease, &err) != HF_OK)
            (void)cli_fail(&err);
    }
    hf_close(once->job.store);
    return exit_code;
}
