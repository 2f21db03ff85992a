/* tool_storm.c - the torture of src/torture/, for the tests' own servers: until HOLDS were entered,
 * or SECONDS are over. What servers suffer in that time is the caller's affair.
 *
 *   tool_storm URL HOLDS SECONDS TTL_MS [WORKERS [SEED]]
 *
 * For stores that notice a death slowly, variables of the environment: STORM_KILL_MS and
 * STORM_FREEZE_EVERY_MS, how often somebody is killed (180) and frozen (160), lest all stand behind
 * the dead most of the time; and STORM_FREEZE_MS, by how much a freeze is longer than the ttl
 * (200), lest nobody is overtaken. STORM_OTHER_URL: another way to the same store, by which every
 * second worker goes.
 *
 * Prints one line, "NAME VALUE" pairs (see tell), and a line for each breach. Exit 1 then. */
#include "base/base.h"
#include "torture/torture.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KILL_EVERY_MS = 180, FREEZE_EVERY_MS = 160, FREEZE_MS = 200 };

static int tell(const struct torture_referee *referee, const struct torture_story *story)
{
    struct torture_verdict sum = torture_sum(referee);

    for (int i = 0; i < TORTURE_STATUSES; i++)
        if (referee->answers[i] != 0)
            printf("# %s %lu%s%s\n", hf_status_name((enum hf_status)i),
                   (unsigned long)referee->answers[i], referee->troubles[i][0] != '\0' ? ": " : "",
                   referee->troubles[i]);
    printf("holds %lu kills %lu freezes %lu stale %lu overlap %lu order %lu lost %llu "
           "unfenced_lost %llu gap_ms %lld\n",
           (unsigned long)referee->holds, story->faults[TORTURE_KILL],
           story->faults[TORTURE_FREEZE], (unsigned long)referee->stale,
           (unsigned long)referee->overlaps, (unsigned long)referee->disorders,
           (unsigned long long)sum.fenced_lost, (unsigned long long)sum.plain_lost,
           (long long)(sum.longest_gap_ns / HF__NS_PER_MS));
    return !sum.sound;
}

static uint64_t told(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    static struct torture_story story;
    struct torture_plan plan = {.stop_fd = -1, .talks = true, .frozen_max = TORTURE_WORKERS_MAX};
    struct torture_referee *referee;

    if (argc < 5) {
        fprintf(stderr, "usage: tool_storm URL HOLDS SECONDS TTL_MS [WORKERS [SEED]]\n");
        return 64;
    }
    plan.url = argv[1];
    plan.other_url = getenv("STORM_OTHER_URL");
    plan.holds = strtoul(argv[2], NULL, 10);
    plan.for_ns = strtoll(argv[3], NULL, 10) * HF__NS_PER_S;
    plan.ttl_ms = (uint32_t)strtoul(argv[4], NULL, 10);
    plan.workers = argc > 5 ? atoi(argv[5]) : TORTURE_WORKERS_DEFAULT;
    plan.seed = argc > 6 ? strtoull(argv[6], NULL, 10) : (uint64_t)hf__wall_us();
    plan.every_ms[TORTURE_KILL] = (int64_t)told("STORM_KILL_MS", KILL_EVERY_MS);
    plan.every_ms[TORTURE_FREEZE] = (int64_t)told("STORM_FREEZE_EVERY_MS", FREEZE_EVERY_MS);
    plan.freeze_ms = told("STORM_FREEZE_MS", FREEZE_MS);
    if (plan.every_ms[TORTURE_KILL] < 1 || plan.every_ms[TORTURE_FREEZE] < 1 || plan.workers < 1 ||
        plan.workers > TORTURE_WORKERS_MAX)
        return 64;
    (void)snprintf(plan.prefix, sizeof plan.prefix, "storm/%d/%lld", (int)getpid(),
                   (long long)hf__wall_us());
    referee = torture_referee_new(&plan);
    if (referee == NULL) {
        perror("tool_storm");
        return 2;
    }
    printf("# seed %llu\n", (unsigned long long)plan.seed);
    if (!torture_run(referee, &story)) {
        perror("tool_storm: fork");
        return 2;
    }
    return tell(referee, &story);
}
