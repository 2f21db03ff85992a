/* tell.c - what was found, for people. */
#include "cli/doctor/doctor.h"

#include "base/base.h"

#include <stdio.h>

static const char *fitness_text(const struct doctor *doctor, enum hf__purpose purpose)
{
    static const char *const texts[] = {
        [HF__FIT] = "fit", [HF__NOT_FIT] = "not fit", [HF__NOT_SHOWN] = "not shown to be fit"};

    if (doctor->failed.code != HF_OK)
        return "could not check";
    return texts[hf__audit_fitness(doctor->findings.items, doctor->findings.count, purpose)];
}

static void print_line(const char *head, const char *text)
{
    char shown[HF__AUDIT_TEXT_MAX];

    hf__copy_printable(shown, sizeof shown, text);
    if (shown[0] != '\0')
        printf("%s%s\n", head, shown);
}

/* What could not be checked says so itself. */
static const char *kind(const struct hf__finding *finding, enum hf__purpose purpose)
{
    if (finding->level == HF__AUDIT_UNCHECKED)
        return "";
    if (hf__audit_counts(finding, purpose))
        return "problem: ";
    return finding->level == HF__AUDIT_ADVICE ? "advice: " : "not for correctness: ";
}

static void print_finding(const struct hf__finding *finding, enum hf__purpose purpose)
{
    char text[HF__AUDIT_TEXT_MAX];
    char where[HF__AUDIT_TEXT_MAX];

    hf__copy_printable(where, sizeof where, finding->where);
    printf("\n%s%s", where, where[0] != '\0' ? ": " : "");
    hf__audit_found(finding, text);
    print_line(kind(finding, purpose), text);
    print_line("    why     ", finding->rule->why);
    hf__audit_change(finding, text);
    print_line("    change  ", text);
}

void doctor_tell(const struct doctor *doctor)
{
    print_line("", doctor->shown.text);
    printf("  for efficiency   %s\n", fitness_text(doctor, HF__FOR_EFFICIENCY));
    printf("  for correctness  %s\n", fitness_text(doctor, HF__FOR_CORRECTNESS));
    for (size_t i = 0; i < doctor->findings.count; i++)
        print_finding(&doctor->findings.items[i], doctor_purpose(doctor));
    printf("\n%zu facts were examined; --json lists them.\n", doctor->facts.count);
    (void)fflush(stdout);
}
