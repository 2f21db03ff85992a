/* tell.c - what a torture came to, as text and as JSON. */
#include "cli/torture/parts.h"

#include "base/base.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

enum { DURATION_SIZE = 32 };

const char *const torture_fault_names[TORTURE_FAULTS] = {
    [TORTURE_KILL] = "kills", [TORTURE_FREEZE] = "freezes", [TORTURE_CUT] = "cuts"};

static const char *duration(char out[DURATION_SIZE], int64_t ns)
{
    if (ns < HF__NS_PER_MS)
        (void)snprintf(out, DURATION_SIZE, "%.2fms", (double)ns / HF__NS_PER_MS);
    else
        (void)hf__format_duration(out, DURATION_SIZE, ns / HF__NS_PER_MS);
    return out;
}

/* ", 2 of them while holding; the next holder came after 4ms (median), 31ms at most" */
static void print_handovers(FILE *out, struct torture_handovers *handovers)
{
    char median[DURATION_SIZE], longest[DURATION_SIZE];

    if (torture_handover_ns(handovers, 1000) < 0)
        return;
    fprintf(out, ", %u of them while holding; the next holder came after %s (median), %s at most",
            atomic_load(&handovers->count), duration(median, torture_handover_ns(handovers, 500)),
            duration(longest, torture_handover_ns(handovers, 1000)));
}

static void print_faults(FILE *out, const struct torture_report *report)
{
    const struct torture_plan *plan = report->plan;
    const struct torture_story *story = report->story;

    if (plan->every_ms[TORTURE_KILL] > 0) {
        fprintf(out, "  killed        %lu", story->faults[TORTURE_KILL]);
        print_handovers(out, &report->referee->handovers[TORTURE_KILL]);
        fputs("\n", out);
    }
    if (plan->every_ms[TORTURE_FREEZE] > 0) {
        fprintf(out, "  frozen        %lu", story->faults[TORTURE_FREEZE]);
        print_handovers(out, &report->referee->handovers[TORTURE_FREEZE]);
        fputs("\n", out);
    }
    if (plan->every_ms[TORTURE_CUT] > 0)
        fprintf(out, "  cut off       %lu; %lu connections%s\n", story->faults[TORTURE_CUT],
                report->sum.cut_connections,
                report->sum.cut_connections == 0 ? ": this store has none to cut" : "");
}

static void print_answers(FILE *out, const struct torture_referee *referee)
{
    for (int i = 0; i < TORTURE_STATUSES; i++)
        if (i != HF_OK && i != HF_BUSY && atomic_load(&referee->answers[i]) != 0)
            fprintf(out, "  %-12s  %lu: %s\n", hf_status_name((enum hf_status)i) + 3,
                    atomic_load(&referee->answers[i]), referee->troubles[i]);
}

static void print_verdict(FILE *out, const struct torture_report *report)
{
    struct torture_referee *referee = report->referee;
    unsigned breaches = atomic_load(&referee->breach_count);

    if (atomic_load(&referee->holds) == 0)
        return; /* nothing was found out */
    if (!report->sum.sound) {
        fputs("\nThis store does not keep what a lock promises:\n", out);
        for (unsigned i = 0; i < breaches && i < TORTURE_BREACHES_MAX; i++)
            fprintf(out, "  %s\n", referee->breaches[i]);
        if (breaches > TORTURE_BREACHES_MAX)
            fprintf(out, "  and %u more\n", breaches - TORTURE_BREACHES_MAX);
        if (report->sum.fenced_lost > 0)
            fprintf(out, "  %" PRIu64 " updates were lost behind the fence\n",
                    report->sum.fenced_lost);
        return;
    }
    fputs("\nNo two valid holds at the same time, tokens in order, nothing lost behind the "
          "fence.\n",
          out);
    if (report->sum.plain_lost > 0)
        fprintf(out, "Without the fence %" PRIu64 " of %" PRIu64 " updates were lost.\n",
                report->sum.plain_lost, report->sum.plain_writes);
    else
        fputs("The counter without a fence happened to lose nothing this time. That is luck, not a "
              "promise:\ntry --freeze, for longer.\n",
              out);
}

static void print_sweep(FILE *out, const struct torture_report *report)
{
    const struct torture_sweep *sweep = report->sweep;

    if (!sweep->known) {
        fprintf(out, "The locks %s/... are being removed by a process of their own.\n",
                report->plan->prefix);
        return;
    }
    if (sweep->forgotten == TORTURE_LOCKS)
        fputs("The names that were used are removed.", out);
    else
        fprintf(out, "%d names %s/... are still in the store: %s.",
                TORTURE_LOCKS - sweep->forgotten, report->plan->prefix, sweep->trouble);
    if (sweep->leaves[0] != '\0')
        fprintf(out, " What any first use of this store leaves: %s.", sweep->leaves);
    fputs("\n", out);
}

void torture_print(FILE *out, const struct torture_report *report)
{
    const struct torture_referee *referee = report->referee;
    char wait[DURATION_SIZE], gap[DURATION_SIZE], lasted[DURATION_SIZE];

    fprintf(out, "  lasted        %s%s\n", duration(lasted, report->story->lasted_ns),
            report->story->stopped ? ", until it was stopped" : "");
    fprintf(out, "  holds         %lu\n", atomic_load(&referee->holds));
    print_faults(out, report);
    fprintf(out, "  longest wait  %s; a lock was without a holder for %s at most\n",
            duration(wait, atomic_load(&referee->longest_wait_ns)),
            duration(gap, report->sum.longest_gap_ns));
    print_answers(out, referee);
    fprintf(out,
            "\n                with a fence  without\n"
            "  updates       %-12" PRIu64 "  %" PRIu64 "\n"
            "  lost          %-12" PRIu64 "  %" PRIu64 "\n"
            "  refused late  %-12lu  -\n"
            "  overlaps      %lu\n"
            "  token order   %s\n",
            report->sum.fenced_writes, report->sum.plain_writes, report->sum.fenced_lost,
            report->sum.plain_lost, atomic_load(&referee->stale), atomic_load(&referee->overlaps),
            atomic_load(&referee->disorders) == 0 ? "kept" : "BROKEN");
    print_verdict(out, report);
    print_sweep(out, report);
}

static void json_handovers(FILE *out, const char *name, struct torture_handovers *handovers)
{
    fprintf(out, "\"%s\": {\"count\": %u", name, atomic_load(&handovers->count));
    if (torture_handover_ns(handovers, 1000) < 0)
        fputs(", \"median_ms\": null, \"longest_ms\": null}", out);
    else
        fprintf(out, ", \"median_ms\": %.3f, \"longest_ms\": %.3f}",
                (double)torture_handover_ns(handovers, 500) / HF__NS_PER_MS,
                (double)torture_handover_ns(handovers, 1000) / HF__NS_PER_MS);
}

static void json_settings(FILE *out, const struct torture_report *report)
{
    const struct torture_plan *plan = report->plan;

    fputs("{\"store\": ", out);
    cli_json_string(out, report->shown);
    fprintf(out,
            ", \"ttl_ms\": %u, \"workers\": %d, \"locks\": %d, \"seed\": %" PRIu64
            ", \"lasted_ms\": %lld, \"stopped\": %s",
            plan->ttl_ms, plan->workers, TORTURE_LOCKS, plan->seed,
            report->story->lasted_ns / HF__NS_PER_MS, report->story->stopped ? "true" : "false");
    for (int i = 0; i < TORTURE_FAULTS; i++)
        fprintf(out, ", \"%s\": %lu", torture_fault_names[i], report->story->faults[i]);
    fprintf(out, ", \"cut_connections\": %lu", report->sum.cut_connections);
}

static void json_sweep(FILE *out, const struct torture_sweep *sweep)
{
    if (!sweep->known) {
        fputs(", \"names_left\": null, \"leaves\": null", out);
        return;
    }
    fprintf(out, ", \"names_left\": %d, \"leaves\": ", TORTURE_LOCKS - sweep->forgotten);
    if (sweep->leaves[0] != '\0')
        cli_json_string(out, sweep->leaves);
    else
        fputs("null", out);
}

void torture_json(FILE *out, const struct torture_report *report)
{
    struct torture_referee *referee = report->referee;

    json_settings(out, report);
    fprintf(out, ", \"holds\": %lu, \"longest_wait_ms\": %lld, \"longest_gap_ms\": %lld",
            atomic_load(&referee->holds),
            (long long)(atomic_load(&referee->longest_wait_ns) / HF__NS_PER_MS),
            report->sum.longest_gap_ns / HF__NS_PER_MS);
    fputs(", \"takeovers\": {", out);
    json_handovers(out, "killed", &referee->handovers[TORTURE_KILL]);
    fputs(", ", out);
    json_handovers(out, "frozen", &referee->handovers[TORTURE_FREEZE]);
    fprintf(out,
            "}, \"fenced\": {\"updates\": %" PRIu64 ", \"lost\": %" PRIu64
            ", \"refused\": %lu}, \"unfenced\": {\"updates\": %" PRIu64 ", \"lost\": %" PRIu64 "}",
            report->sum.fenced_writes, report->sum.fenced_lost, atomic_load(&referee->stale),
            report->sum.plain_writes, report->sum.plain_lost);
    fprintf(out, ", \"overlaps\": %lu, \"disorders\": %lu, \"sound\": %s",
            atomic_load(&referee->overlaps), atomic_load(&referee->disorders),
            report->sum.sound ? "true" : "false");
    json_sweep(out, report->sweep);
    fputs("}\n", out);
}
