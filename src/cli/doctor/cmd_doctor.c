/* cmd_doctor.c - holdfast doctor: ask what the lock is for, collect the facts, judge them, tell.
 *
 * The facts come from the store (hf_audit), from the fences that are named, and from the options;
 * the judgement is src/core/audit.h's. */
#include "cli/doctor/doctor.h"

#include "base/base.h"
#include "base/fact.h"
#include "cli/run/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_options(struct doctor *doctor, int argc, char **argv, bool *go_on);
static int examine(struct doctor *doctor);

static int doctor_main(const struct cli_context *context, int argc, char **argv)
{
    struct doctor *doctor = calloc(1, sizeof *doctor);
    bool go_on = false;
    int exit_code;

    if (doctor == NULL) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    doctor->url = context->store_url;
    doctor->purpose = DOCTOR_NOT_SAID;
    doctor->ttl_ms = HF_TTL_DEFAULT_MS;
    exit_code = read_options(doctor, argc, argv, &go_on);
    if (go_on)
        exit_code = examine(doctor);
    audit_findings_clear(&doctor->findings);
    audit_facts_clear(&doctor->facts);
    explicit_bzero(&doctor->fences, sizeof doctor->fences);
    free(doctor);
    return exit_code;
}

const struct cli_command command_doctor = {
    "doctor", "[options]", "tell which kind of lock this store is fit for", doctor_main};

static int read_options(struct doctor *doctor, int argc, char **argv, bool *go_on)
{
    static const char *const purposes[] = {"efficiency", "correctness", NULL};
    const struct cli_option options[] = {
        {0, "for", CLI_CHOICE, "WHAT", "what the lock is for: efficiency or correctness", purposes,
         &doctor->purpose, NULL},
        AUDIT_FENCE_OPTIONS(&doctor->fences),
        {0, "ttl", CLI_DURATION, "DURATION", "how long a lease lasts; default: 30s", NULL,
         &doctor->ttl_ms, &doctor->ttl_given},
        {0, "grace", CLI_DURATION, "DURATION",
         "grace of the jobs; default: 5s, at most a third of the ttl", NULL, &doctor->grace_ms,
         &doctor->grace_given},
        CLI_JSON_OPTION(&doctor->json),
        {.name = NULL}};
    const char *operand;
    int parsed = cli_parse_operand(&command_doctor, options, argc, argv, &operand);
    int bad = 0;

    if (parsed < 0)
        return cli_parse_exit(parsed);
    if (operand != NULL)
        bad = cli_one_too_many(&command_doctor, operand);
    if (!bad)
        bad = audit_fences_check(&command_doctor, &doctor->fences);
    if (!bad && doctor->ttl_given && !cli_check_ttl(&command_doctor, doctor->ttl_ms))
        bad = EXIT_HF_USAGE;
    *go_on = !bad;
    return bad;
}

/* Renewal and grace, by the arithmetic of run. */
static void tell_timing(struct doctor *doctor)
{
    struct run_options options = {.take = {.ttl_ms = doctor->ttl_ms},
                                  .grace_ms = doctor->grace_ms,
                                  .grace_given = doctor->grace_given};
    struct hf__teller teller = {.fn = audit_facts_add, .data = &doctor->facts};
    int64_t renewal_ms = run_renew_ns(doctor->ttl_ms) / HF__NS_PER_MS;
    char why[RUN_WHY_SIZE] = "";

    run_choose_grace(&options);
    hf__tell(&teller, (struct hf__topic){"client.ttl", "ms", "--ttl"}, "%" PRId64, doctor->ttl_ms);
    hf__tell(&teller, (struct hf__topic){"client.grace", "ms", "--grace"}, "%" PRId64,
             options.grace_ms);
    hf__tell(&teller, (struct hf__topic){"client.renewal", "ms", "a third of the ttl"}, "%" PRId64,
             renewal_ms);
    (void)run_timing_fits(&options, why, sizeof why);
    hf__tell(&teller, (struct hf__topic){"client.timing", NULL, "ttl and grace"}, "%s", why);
}

/* Without --ttl it is the most that the store grants. */
static void fit_ttl(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->facts.count && !doctor->ttl_given; i++) {
        const struct hf_fact *fact = &doctor->facts.items[i];
        uint64_t max_ms;

        if (strcmp(fact->key, "store.max_ttl") == 0 && hf__parse_u64(fact->value, &max_ms) &&
            max_ms > 0 && (int64_t)max_ms < doctor->ttl_ms)
            doctor->ttl_ms = (int64_t)max_ms;
    }
}

/* A store that does not let us in has told something, too. */
static void collect(struct doctor *doctor)
{
    const struct hf_audit_options options = {.size = sizeof options,
                                             .ttl_ms = (uint32_t)doctor->ttl_ms};
    struct hf__teller teller = {.fn = audit_facts_add, .data = &doctor->facts};
    enum hf_status status =
        hf_audit(doctor->url, &options, audit_facts_add, &doctor->facts, &doctor->failed);

    if (status == HF_DENIED) {
        hf__tell(&teller, (struct hf__topic){"store.refusal", NULL, "hf_audit"}, "%s",
                 doctor->failed.text);
        doctor->failed.code = HF_OK;
    }
    fit_ttl(doctor);
    tell_timing(doctor);
    audit_fences_count(&doctor->fences, &doctor->facts);
    if (doctor->failed.code == HF_OK)
        audit_fences_tell(&doctor->fences, doctor->url, &doctor->facts);
}

static int examine(struct doctor *doctor)
{
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    enum hf__fitness fitness;

    (void)cli_shown(&doctor->shown, doctor->url != NULL ? doctor->url : "file:");
    if (terminal && !doctor->json && doctor->purpose == DOCTOR_NOT_SAID && !doctor_ask(doctor))
        return EXIT_HF_USAGE;
    collect(doctor);
    if (!doctor->json &&
        (doctor->failed.code == HF_INVALID || doctor->failed.code == HF_UNSUPPORTED))
        return cli_fail(&doctor->failed);
    if (!audit_judge(&doctor->facts, &doctor->findings)) {
        cli_error("out of memory");
        return EXIT_HF_INTERNAL;
    }
    if (doctor->json)
        doctor_json(doctor);
    else
        doctor_tell(doctor);
    if (doctor->failed.code != HF_OK)
        return doctor->json ? cli_exit_code(doctor->failed.code) : cli_fail(&doctor->failed);
    doctor_tell_advice(doctor);
    fitness =
        hf__audit_fitness(doctor->findings.items, doctor->findings.count, doctor_purpose(doctor));
    return fitness == HF__FIT ? 0 : EXIT_HF_NO;
}
