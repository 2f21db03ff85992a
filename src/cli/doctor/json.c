/* json.c - what was found, for programs: facts and verdicts apart. docs/doctor.schema.json says
 * what is in it. */
#include "cli/doctor/doctor.h"

#include <stdio.h>

static void member(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text != NULL)
        cli_json_string(stdout, text);
    else
        fputs("null", stdout);
}

static void print_fact(const struct hf_fact *fact)
{
    fputs("{\"key\": ", stdout);
    cli_json_string(stdout, fact->key);
    member("value", fact->unknown == NULL ? fact->value : NULL);
    member("unit", fact->unit);
    member("source", fact->source);
    member("where", fact->where);
    member("unknown", fact->unknown);
    putchar('}');
}

static void print_verdict(const struct hf__finding *finding, enum hf__purpose purpose)
{
    static const char *const levels[] = {[HF__AUDIT_UNFIT] = "unfit",
                                         [HF__AUDIT_RISKY] = "risky",
                                         [HF__AUDIT_ADVICE] = "advice",
                                         [HF__AUDIT_UNCHECKED] = "unchecked"};
    char text[HF__AUDIT_TEXT_MAX];

    fputs("{\"rule\": ", stdout);
    cli_json_string(stdout, finding->rule->name);
    member("level", levels[finding->level]);
    printf(", \"counts\": %s", hf__audit_counts(finding, purpose) ? "true" : "false");
    member("key", finding->fact != NULL ? finding->fact->key : finding->rule->key);
    member("where", finding->where);
    hf__audit_found(finding, text);
    member("found", text);
    member("why", finding->rule->why);
    hf__audit_change(finding, text);
    member("change", text);
    putchar('}');
}

static const char *fit(const struct doctor *doctor, enum hf__purpose purpose)
{
    static const char *const words[] = {
        [HF__FIT] = "true", [HF__NOT_FIT] = "false", [HF__NOT_SHOWN] = "null"};

    if (doctor->failed.code != HF_OK)
        return "null";
    return words[hf__audit_fitness(doctor->findings.items, doctor->findings.count, purpose)];
}

void doctor_json(const struct doctor *doctor)
{
    enum hf__purpose purpose = doctor_purpose(doctor);

    fputs("{\"store\": ", stdout);
    cli_json_string(stdout, doctor->shown.text);
    member("for", purpose == HF__FOR_CORRECTNESS ? "correctness" : "efficiency");
    printf(", \"fit\": %s, \"efficiency\": %s, \"correctness\": %s", fit(doctor, purpose),
           fit(doctor, HF__FOR_EFFICIENCY), fit(doctor, HF__FOR_CORRECTNESS));
    member("error", doctor->failed.code != HF_OK ? cli_text_of(&doctor->failed) : NULL);
    fputs(",\n \"facts\": [", stdout);
    for (size_t i = 0; i < doctor->facts.count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stdout);
        print_fact(&doctor->facts.items[i]);
    }
    fputs("],\n \"verdicts\": [", stdout);
    for (size_t i = 0; i < doctor->findings.count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stdout);
        print_verdict(&doctor->findings.items[i], purpose);
    }
    puts("]}");
}
