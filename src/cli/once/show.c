/* show.c - what is on record about a key, for people and programs. */
#include "cli/once/once.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ENTRIES = 64 };

static void print_json(const char *key, const char *slot, const struct hf__once_record *record);

/* Listing: slots in the order of their names, which is that of time, with one exception. */

static bool grow(struct once_list *list)
{
    size_t count = list->count;
    size_t room;
    struct once_entry *entries;

    if (count != 0 && (count < FIRST_ENTRIES || (count & (count - 1)) != 0))
        return true;
    room = count < FIRST_ENTRIES ? FIRST_ENTRIES : 2 * count;
    entries = reallocarray(list->entries, room, sizeof *entries);
    if (entries == NULL)
        return false;
    list->entries = entries;
    return true;
}

static bool collect(const struct hf_record *record, void *data)
{
    struct once_list *list = data;
    const char *slot = record->key + strlen(HF__ONCE_SLOT_PREFIX);
    struct once_entry *entry;

    if (strlen(slot) > HF__ONCE_SLOT_MAX)
        return true;
    if (!grow(list)) {
        list->no_memory = true;
        return false;
    }
    entry = &list->entries[list->count++];
    (void)snprintf(entry->slot, sizeof entry->slot, "%s", slot);
    entry->readable =
        hf__once_read(&entry->record, record->value, record->value_len) == HF__ONCE_READ;
    entry->record.output = NULL;
    entry->record.output_len = 0;
    return true;
}

/* A key that has periods may have been used without one before: "ever" is the oldest. */
static int by_slot(const void *a, const void *b)
{
    const char *one = ((const struct once_entry *)a)->slot;
    const char *other = ((const struct once_entry *)b)->slot;
    int ever = (strcmp(other, HF__SLOT_EVER) == 0) - (strcmp(one, HF__SLOT_EVER) == 0);

    return ever != 0 ? ever : strcmp(one, other);
}

enum hf_status once_list(struct hf_store *store, const char *name, struct once_list *list,
                         struct hf_error *err)
{
    enum hf_status status;

    *list = (struct once_list){0};
    status = hf_record_list(store, name, HF__ONCE_SLOT_PREFIX, collect, list, err);
    if (status == HF_OK && list->no_memory)
        status = hf__nomem(err);
    if (list->count > 1)
        qsort(list->entries, list->count, sizeof *list->entries, by_slot);
    return status;
}

static void print_row(const struct once_entry *entry)
{
    const struct hf__once_record *record = &entry->record;
    char began[HF__ONCE_TIME_SIZE] = "-", took[32] = "-", by[HF_LABEL_MAX + 1];

    if (!entry->readable) {
        printf("%-20s  unreadable\n", entry->slot);
        return;
    }
    if (record->since_ms >= 0)
        (void)hf__once_time(began, record->since_ms);
    if (record->took_ms >= 0)
        (void)hf__format_duration(took, sizeof took, record->took_ms);
    hf__copy_printable(by, sizeof by, record->by);
    printf("%-20s  %-8s  %4" PRIu64 "  %8" PRIu64 "  %-23s  %8s  %s\n", entry->slot,
           hf__once_state_text(record->state), record->exit_code, record->attempts, began, took,
           by);
}

static void print_history(const char *key, const struct once_list *list, bool json)
{
    if (json) {
        putchar('[');
        for (size_t i = 0; i < list->count; i++) {
            fputs(i ? ",\n " : "", stdout);
            print_json(key, list->entries[i].slot,
                       list->entries[i].readable ? &list->entries[i].record : NULL);
        }
        puts("]");
        return;
    }
    if (list->count > 0)
        printf("%-20s  %-8s  %4s  %8s  %-23s  %8s  %s\n", "SLOT", "STATE", "EXIT", "ATTEMPTS",
               "BEGAN", "TOOK", "BY");
    for (size_t i = 0; i < list->count; i++)
        print_row(&list->entries[i]);
}

int once_history(struct once *once, const struct cli_context *context)
{
    int exit_code = 0;
    struct once_list list;
    struct hf_error err;
    enum hf_status status;
    struct hf_store *store = cli_open_readonly(context, &exit_code);

    if (store == NULL)
        return exit_code;
    status = once_list(store, once->ask.run.name, &list, &err);
    /* A record that is damaged hides none of the others. */
    if (status == HF_OK || status == HF_CORRUPT)
        print_history(once->ask.run.name, &list, once->ask.json);
    if (status != HF_OK)
        exit_code = cli_fail(&err);
    free(list.entries);
    hf_close(store);
    return exit_code;
}

/* Of the last slot, unless one was named. False: there is none. */
static enum hf_status find(struct once *once, struct hf_store *store, char *slot, size_t size,
                           struct hf_error *err)
{
    char key[HF__ONCE_KEY_SIZE];
    struct once_list list = {0};
    enum hf_status status = HF_OK;

    slot[0] = '\0';
    if (once->ask.slot != NULL) {
        (void)snprintf(slot, size, "%s", once->ask.slot);
    } else {
        status = once_list(store, once->ask.run.name, &list, err);
        if (status == HF_OK && list.count > 0)
            (void)snprintf(slot, size, "%s", list.entries[list.count - 1].slot);
        free(list.entries);
    }
    once->work.found.there = false;
    if (status != HF_OK || slot[0] == '\0')
        return status;
    hf__once_slot_key(key, slot);
    return hf__once_get(store, once->ask.run.name, key, &once->work.found, err);
}

/* As a string: a NUL becomes a byte that is not UTF-8, and is shown like one. */
static void copy_output(char out[HF__ONCE_OUTPUT_MAX + 1], const struct hf__once_record *record)
{
    for (size_t i = 0; i < record->output_len; i++)
        out[i] = record->output[i] != '\0' ? record->output[i] : '\xff';
    out[record->output_len] = '\0';
}

/* A terminal would obey escape sequences that a program once wrote somewhere else. */
static void print_output(const struct hf__once_record *record)
{
    char text[HF__ONCE_OUTPUT_MAX + 1], clean[HF__ONCE_OUTPUT_MAX + 1];
    char *rest = text;
    bool whole_line = record->output[record->output_len - 1] == '\n';

    if (isatty(STDOUT_FILENO) != 1) {
        fwrite(record->output, 1, record->output_len, stdout);
        fputs(whole_line ? "" : "\n", stdout);
        return;
    }
    copy_output(text, record);
    if (whole_line)
        text[record->output_len - 1] = '\0';
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        hf__copy_printable(clean, sizeof clean, line);
        puts(clean);
    }
}

static void print_record(const struct once *once, const char *slot)
{
    char sentence[HF__ONCE_SENTENCE_SIZE], clean[HF__ONCE_SENTENCE_SIZE], settings[128];
    const struct hf__once_record *record = &once->work.found.record;

    hf__once_sentence(sentence, sizeof sentence, once->ask.run.name, slot, record);
    hf__copy_printable(clean, sizeof clean, sentence);
    puts(clean);
    printf("  token      %" PRIu64 "\n  attempts   %" PRIu64 "\n  settings   %s\n", record->token,
           record->attempts, hf__once_settings_text(settings, sizeof settings, &record->settings));
    if (record->note[0] != '\0' && record->state != HF__ONCE_CLEARED)
        printf("  note       %s\n", record->note);
    if (record->output_len > 0) {
        fputs("  output\n", stdout);
        print_output(record);
    }
}

int once_show(struct once *once, const struct cli_context *context)
{
    char slot[HF__ONCE_SLOT_MAX + 1];
    int exit_code = 0;
    struct hf_error err;
    struct hf_store *store = cli_open_readonly(context, &exit_code);

    if (store == NULL)
        return exit_code;
    if (find(once, store, slot, sizeof slot, &err) != HF_OK) {
        exit_code = cli_fail(&err);
    } else if (!once->work.found.there) {
        cli_error("nothing is on record about \"%s\"%s%s", once->ask.run.name,
                  slot[0] != '\0' ? ", slot " : "", slot);
        exit_code = EXIT_HF_NO;
    } else if (once->ask.json) {
        print_json(once->ask.run.name, slot, &once->work.found.record);
        putchar('\n');
    } else {
        print_record(once, slot);
    }
    hf_close(store);
    return exit_code;
}

static void json_text(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text[0] != '\0')
        cli_json_string(stdout, text);
    else
        fputs("null", stdout);
}

static void json_time(const char *name, int64_t ms)
{
    if (ms >= 0)
        printf(", \"%s\": %" PRId64, name, ms);
    else
        printf(", \"%s\": null", name);
}

static void print_json(const char *key, const char *slot, const struct hf__once_record *record)
{
    fputs("{\"key\": ", stdout);
    cli_json_string(stdout, key);
    fputs(", \"slot\": ", stdout);
    cli_json_string(stdout, slot);
    printf(", \"state\": \"%s\"",
           record != NULL ? hf__once_state_text(record->state) : "unreadable");
    if (record != NULL) {
        json_text("by", record->by);
        printf(", \"token\": %" PRIu64, record->token);
        json_time("since_ms", record->since_ms);
        json_time("took_ms", record->took_ms);
        printf(", \"exit_code\": %" PRIu64 ", \"attempts\": %" PRIu64 ", \"failures\": %" PRIu64
               ", \"per_ms\": %" PRId64,
               record->exit_code, record->attempts, record->failures, record->settings.period_ms);
        json_text("at", record->settings.at);
        json_text("tz", record->settings.zone);
        json_text("note", record->note);
        if (record->output_len > 0) {
            char text[HF__ONCE_OUTPUT_MAX + 1];

            copy_output(text, record);
            json_text("output", text);
        }
    }
    putchar('}');
}
