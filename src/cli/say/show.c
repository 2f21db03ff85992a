/* show.c - how status and list show a lock. */
#include "cli/say/show.h"

#include "base/base.h"
#include "cli/cli.h"
#include "cli/say/slots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DURATION_SIZE = 32 };

static void json_number(FILE *out, const char *key, bool known, int64_t value);
static void json_revocation(FILE *out, const struct hf_revocation *revocation);
static void print_revocation(FILE *out, const struct hf_revocation *revocation);
static const char *duration(char *out, int64_t ms);
static int columns(const char *text);

bool cli_lock_copy(struct cli_lock *lock, const struct hf_lock_info *info)
{
    size_t name_size = strlen(info->name) + 1;
    size_t label_size = strlen(info->label) + 1;
    size_t revocation_size = info->revocation != NULL ? sizeof *info->revocation : 0;
    char *name;

    lock->text = malloc(revocation_size + name_size + label_size);
    if (lock->text == NULL)
        return false;
    name = lock->text + revocation_size;
    memcpy(name, info->name, name_size);
    memcpy(name + name_size, info->label, label_size);
    lock->info = *info;
    lock->info.name = name;
    lock->info.label = name + name_size;
    if (info->revocation != NULL) {
        memcpy(lock->text, info->revocation, sizeof *info->revocation);
        lock->info.revocation = (const void *)lock->text;
    }
    return true;
}

void cli_lock_clear(struct cli_lock *lock)
{
    free(lock->text);
    lock->text = NULL;
}

size_t cli_features(unsigned features, const char *names[CLI_FEATURES_MAX])
{
    static const struct {
        unsigned bit;
        const char *name;
    } known[] = {{HF_FEATURE_FAIR, "fair"},
                 {HF_FEATURE_CRASH_RELEASE, "crash-release"},
                 {HF_FEATURE_DURABLE_TOKENS, "durable-tokens"},
                 {HF_FEATURE_DETACHED, "detached"},
                 {HF_FEATURE_RENEW_TTL, "renew-ttl"},
                 {HF_FEATURE_RECORDS, "records"},
                 {HF_FEATURE_BREAK, "break"}};
    size_t count = 0;
    _Static_assert(sizeof known / sizeof known[0] == CLI_FEATURES_MAX, "room for all of them");

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((features & known[i].bit) != 0)
            names[count++] = known[i].name;
    return count;
}

static void json_token(FILE *out, const struct hf_lock_info *info, enum cli_token_form form)
{
    if (form == CLI_TOKEN_TEXT && info->held && info->token != 0)
        fprintf(out, ", \"token\": \"%" PRIu64 "\"", info->token);
    else
        json_number(out, "token", info->held && info->token != 0, (int64_t)info->token);
}

void cli_lock_json(FILE *out, const struct hf_lock_info *info, enum cli_token_form form)
{
    fputs("{\"name\": ", out);
    cli_json_string(out, info->name);
    fprintf(out, ", \"held\": %s", info->held ? "true" : "false");
    json_token(out, info, form);
    fputs(", \"label\": ", out);
    if (info->held && info->label[0] != '\0')
        cli_json_string(out, info->label);
    else
        fputs("null", out);
    json_number(out, "age_ms", info->held && info->age_ms >= 0, info->age_ms);
    json_number(out, "remaining_ms", info->held && info->remaining_ms >= 0, info->remaining_ms);
    json_number(out, "ttl_ms", info->held && info->ttl_ms > 0, info->ttl_ms);
    fprintf(out, ", \"waiters\": %" PRIu64 ", \"detached\": %s, \"foreign\": %s, \"broken\": ",
            info->waiters, info->detached ? "true" : "false", info->foreign ? "true" : "false");
    json_revocation(out, info->revocation);
    putc('}', out);
}

void cli_lock_print(FILE *out, const struct hf_lock_info *info)
{
    char name[HF_NAME_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    char text[DURATION_SIZE];

    hf__copy_printable(name, sizeof name, info->name);
    hf__copy_printable(label, sizeof label, info->label);
    fprintf(out, "%s: %s\n", name, info->held ? "held" : "free");
    if (info->held) {
        fprintf(out, "  label      %s\n", label[0] != '\0' ? label : "unknown");
        if (info->token)
            fprintf(out, "  token      %" PRIu64 "\n", info->token);
        fprintf(out, "  age        %s\n", duration(text, info->age_ms));
        fprintf(out, "  remaining  %s%s\n", duration(text, info->remaining_ms),
                info->revocation != NULL ? "" : " unless renewed");
        if (info->revocation != NULL)
            print_revocation(out, info->revocation);
        if (info->detached)
            fputs("  detached   belongs to no process\n", out);
        if (info->foreign)
            fputs("  foreign    taken by a client that is not holdfast\n", out);
    }
    fprintf(out, "  waiters    %" PRIu64 "\n", info->waiters);
}

static void print_row(FILE *out, const struct hf_lock_info *info, int width)
{
    char name[HF_NAME_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    char token[24];
    char age[DURATION_SIZE];
    char remaining[DURATION_SIZE];

    hf__copy_printable(name, sizeof name, info->name);
    hf__copy_printable(label, sizeof label, info->label);
    (void)snprintf(token, sizeof token, "%" PRIu64, info->token);
    fprintf(out, "%s%*s  %16s  %8s  %9s  %7" PRIu64 "  %s%s\n", name, width - columns(name), "",
            info->held && info->token ? token : "-", info->held ? duration(age, info->age_ms) : "-",
            info->held ? duration(remaining, info->remaining_ms) : "-", info->waiters,
            info->revocation != NULL ? "(broken) " : "", info->held ? label : "(free)");
}

/* "gpu#0..3: 2 of 4 held" */
static void print_slots(FILE *out, const struct cli_slots *slots)
{
    char name[HF_NAME_MAX + 1], shown[HF_NAME_MAX + 1];
    char text[CLI_SLOTS_TEXT_SIZE];

    (void)snprintf(name, sizeof name, "%.*s", slots->len, slots->name);
    hf__copy_printable(shown, sizeof shown, name);
    cli_slots_text(slots, text);
    fprintf(out, "%s#0..%u: %s\n", shown, slots->slots - 1, text);
}

void cli_locks_print(FILE *out, const struct cli_lock *locks, size_t count, bool flat)
{
    int width = columns("NAME");

    for (size_t i = 0; i < count; i++) {
        int own = columns(locks[i].info.name);

        width = own > width ? own : width;
    }
    fprintf(out, "%-*s  %16s  %8s  %9s  %7s  %s\n", width, "NAME", "TOKEN", "AGE", "REMAINING",
            "WAITERS", "LABEL");
    for (size_t i = 0; i < count;) {
        struct cli_slots slots = cli_slots_find(locks + i, flat ? 0 : count - i);

        if (slots.count > 1) {
            print_slots(out, &slots);
            i += slots.count;
        } else {
            print_row(out, &locks[i++].info, width);
        }
    }
}

static void json_revocation(FILE *out, const struct hf_revocation *revocation)
{
    if (revocation == NULL) {
        fputs("null", out);
        return;
    }
    fputs("{\"by\": ", out);
    cli_json_string(out, revocation->by);
    fputs(", \"reason\": ", out);
    if (revocation->reason[0] != '\0')
        cli_json_string(out, revocation->reason);
    else
        fputs("null", out);
    json_number(out, "at_ms", revocation->at_ms > 0, revocation->at_ms);
    putc('}', out);
}

static void print_revocation(FILE *out, const struct hf_revocation *revocation)
{
    int64_t ago_ms = hf__wall_us() / 1000 - revocation->at_ms;
    char by[HF_LABEL_MAX + 1];
    char reason[HF_REASON_MAX + 1];
    char text[DURATION_SIZE];

    hf__copy_printable(by, sizeof by, revocation->by);
    hf__copy_printable(reason, sizeof reason, revocation->reason);
    fprintf(out, "  broken     by %s", by[0] != '\0' ? by : "somebody");
    if (revocation->at_ms > 0)
        fprintf(out, ", %s ago", duration(text, ago_ms > 0 ? ago_ms : 0));
    fprintf(out, "%s%s\n", reason[0] != '\0' ? ": " : "", reason);
}

static void json_number(FILE *out, const char *key, bool known, int64_t value)
{
    if (known)
        fprintf(out, ", \"%s\": %" PRId64, key, value);
    else
        fprintf(out, ", \"%s\": null", key);
}

static const char *duration(char *out, int64_t ms)
{
    return ms < 0 ? "?" : hf__format_duration(out, DURATION_SIZE, ms);
}

/* How wide text is on a terminal, near enough: one column per UTF-8 character. */
static int columns(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}
