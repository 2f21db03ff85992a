/* require.c - --require: refuse to take a lock that the setup is not fit for. */
#include "cli/audit/audit.h"

#include "base/base.h"
#include "core/lease.h"

#include <string.h>

const char *const audit_require_words[] = {"nothing", "correctness", NULL};

int audit_require_check(const struct cli_command *command, const struct audit_require *require)
{
    int bad = audit_fences_check(command, &require->fences);

    if (bad)
        return bad;
    if (require->what == 0 && require->fences.named.count > 0)
        return cli_usage_error(command, "--fence needs --require correctness");
    if (require->what == 0 || require->fences.named.count > 0)
        return 0;
    cli_error("--require correctness: no fence is named; without one a lock keeps nothing correct: "
              "name what the job writes to with --fence FILE, --fence URL#KEY, or --db URL --fence "
              "TABLE");
    return EXIT_HF_UNFIT;
}

/* An audit that ends early if it finds what was judged before. */
struct inquiry {
    const char *judged;
    struct audit_facts facts;
    char incarnation[sizeof((struct audit_require *)NULL)->judged];
    bool same;
};

static bool hear(const struct hf_fact *fact, void *data)
{
    struct inquiry *inquiry = data;

    if (strcmp(fact->key, "store.incarnation") == 0 && fact->unknown == NULL) {
        (void)snprintf(inquiry->incarnation, sizeof inquiry->incarnation, "%s", fact->value);
        inquiry->same =
            inquiry->incarnation[0] != '\0' && strcmp(inquiry->incarnation, inquiry->judged) == 0;
    }
    return !inquiry->same && audit_facts_add(fact, &inquiry->facts);
}

/* The gravest, and how many more there are. */
static void refuse(const struct audit_findings *findings, char why[AUDIT_WHY_SIZE])
{
    const struct hf__finding *worst = NULL;
    char found[HF__AUDIT_TEXT_MAX];
    char change[HF__AUDIT_TEXT_MAX];
    char more[64] = "";
    size_t others = 0;

    for (size_t i = 0; i < findings->count; i++) {
        if (!hf__audit_counts(&findings->items[i], HF__FOR_CORRECTNESS))
            continue;
        others += worst != NULL;
        if (worst == NULL)
            worst = &findings->items[i];
    }
    if (worst == NULL)
        return;
    hf__audit_found(worst, found);
    hf__audit_change(worst, change);
    if (others > 0)
        (void)snprintf(more, sizeof more, " (%zu more: holdfast doctor)", others);
    (void)snprintf(why, AUDIT_WHY_SIZE, "--require correctness: %.80s%s%.300s%s: %.160s%s%.200s",
                   worst->where, worst->where[0] != '\0' ? ": " : "", found, more, worst->rule->why,
                   change[0] != '\0' ? "; change: " : "", change);
}

static int judge(struct inquiry *inquiry, char why[AUDIT_WHY_SIZE])
{
    struct audit_findings findings = {.count = 0};
    int exit_code = 0;

    if (!audit_judge(&inquiry->facts, &findings)) {
        (void)snprintf(why, AUDIT_WHY_SIZE, "--require correctness: out of memory");
        exit_code = EXIT_HF_INTERNAL;
    } else if (hf__audit_fitness(findings.items, findings.count, HF__FOR_CORRECTNESS) != HF__FIT) {
        refuse(&findings, why);
        exit_code = EXIT_HF_UNFIT;
    }
    audit_findings_clear(&findings);
    return exit_code;
}

int audit_require_met(struct audit_require *require, const struct audit_lock *lock,
                      char why[AUDIT_WHY_SIZE])
{
    const struct hf_audit_options options = {.size = sizeof options,
                                             .scope = HF_AUDIT_DECISIVE,
                                             .limit_ms = hf__renew_interval_ns(lock->ttl_ms) /
                                                         HF__NS_PER_MS};
    struct inquiry inquiry = {.judged = require->judged};
    struct hf_error err;
    enum hf_status status;
    int exit_code = 0;

    if (require->what == 0)
        return 0;
    status = hf_audit(lock->url, &options, hear, &inquiry, &err);
    if (status != HF_OK) {
        (void)snprintf(why, AUDIT_WHY_SIZE, "--require correctness: %s", cli_text_of(&err));
        exit_code = cli_exit_code(status);
    } else if (!inquiry.same) {
        audit_fences_count(&require->fences, &inquiry.facts);
        audit_fences_tell(&require->fences, lock->url, &inquiry.facts);
        exit_code = judge(&inquiry, why);
        if (exit_code == 0)
            memcpy(require->judged, inquiry.incarnation, sizeof require->judged);
    }
    audit_facts_clear(&inquiry.facts);
    if (exit_code != 0)
        cli_stderr_say(lock->writer, "lock \"%s\": %s", lock->name, why);
    return exit_code;
}
