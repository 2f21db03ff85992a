/* check.c - holdfast once --check: one line for a monitoring system, and exit 0 or 1. */
#include "cli/once/once.h"

#include "base/base.h"

#include <string.h>

/* --at and --tz are on record; whoever gives others means another schedule. */
static int use_settings(struct once *once, const struct hf__once_settings *found)
{
    struct once_request *ask = &once->ask;
    struct hf_error err;

    if (found->period_ms == ask->per_ms && ask->at == NULL && ask->tz == NULL &&
        found->at[0] != '\0' && found->zone[0] != '\0') {
        int bad;

        ask->at = found->at;
        ask->tz = found->zone;
        bad = once_settings(once);
        ask->at = ask->tz = NULL; /* found will be gone */
        return bad;
    }
    return hf__once_same_settings(&once->work, found, &err) == HF_OK ? 0 : cli_fail(&err);
}

static void print(const struct once *once, const char *slot, bool good, const char *sentence)
{
    char clean[HF__ONCE_SENTENCE_SIZE];

    if (once->ask.json) {
        fputs("{\"key\": ", stdout);
        cli_json_string(stdout, once->ask.run.name);
        fputs(", \"slot\": ", stdout);
        cli_json_string(stdout, slot);
        printf(", \"ok\": %s, \"text\": ", good ? "true" : "false");
        cli_json_string(stdout, sentence);
        puts("}");
        return;
    }
    hf__copy_printable(clean, sizeof clean, sentence);
    printf("%s - %s\n", good ? "OK" : "CRITICAL", clean);
}

/* The last slot that is due; *first_ms is when there were slots at all. */
static int check_slot(struct once *once, struct hf_store *store, int64_t first_ms)
{
    int64_t late_ms = once->ask.late_given ? once->ask.late_ms : once->ask.per_ms;
    int64_t then_ms = once->work.found.now_ms > late_ms ? once->work.found.now_ms - late_ms : 0;
    struct hf__slot slot = hf__slot_of(&once->work.plan.schedule, then_ms);
    char key[HF__ONCE_KEY_SIZE], sentence[HF__ONCE_SENTENCE_SIZE];
    struct hf_error err;
    bool good;

    if (slot.start_ms < first_ms) {
        (void)snprintf(sentence, sizeof sentence, "\"%s\": no slot is due yet", once->ask.run.name);
        print(once, slot.name, true, sentence);
        return 0;
    }
    hf__once_slot_key(key, slot.name);
    if (hf__once_get(store, once->ask.run.name, key, &once->work.found, &err) != HF_OK)
        return cli_fail(&err);
    good = once->work.found.there && once->work.found.record.state == HF__ONCE_DONE;
    hf__once_sentence(sentence, sizeof sentence, once->ask.run.name, slot.name,
                      once->work.found.there ? &once->work.found.record : NULL);
    print(once, slot.name, good, sentence);
    return good ? 0 : EXIT_HF_NO;
}

static int check_in(struct once *once, struct hf_store *store)
{
    struct hf_error err;
    char sentence[HF__ONCE_SENTENCE_SIZE];
    int64_t first_ms;
    int bad;

    if (hf__once_get(store, once->ask.run.name, HF__ONCE_SETTINGS_KEY, &once->work.found, &err) !=
        HF_OK)
        return cli_fail(&err);
    if (!once->work.found.there) {
        (void)snprintf(sentence, sizeof sentence, "\"%s\" was never run", once->ask.run.name);
        print(once, "", false, sentence);
        return EXIT_HF_NO;
    }
    first_ms = once->work.found.record.first_ms;
    bad = use_settings(once, &once->work.found.record.settings);
    return bad ? bad : check_slot(once, store, first_ms);
}

int once_check(struct once *once, const struct cli_context *context)
{
    int exit_code = 0;
    struct hf_store *store = cli_open_readonly(context, &exit_code);

    if (store == NULL)
        return exit_code;
    exit_code = check_in(once, store);
    hf_close(store);
    return exit_code;
}
