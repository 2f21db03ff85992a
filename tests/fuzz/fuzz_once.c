/* fuzz_once.c - whatever lies in a record of `once`, or in a file of the time zone database. Built
 * by fuzz.sh. */
#include "core/once.h"
#include "core/schedule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

/* What was read can be written, and means the same when it is read again. */
static void read_record(const char *text, size_t size)
{
    static char again[HF__ONCE_TEXT_MAX];
    const struct hf__once_rules rules = {.retries = 2, .retry_after_ms = 1000, .start_by_ms = 5000};
    struct hf__once_record record, copy;
    struct hf__once_case now = {.record = &record, .holding = true, .now_ms = 100000};
    int64_t until_ms;
    size_t len;

    if (hf__once_read(&record, text, size) != HF__ONCE_READ)
        return;
    if (hf__once_decide(&now, &rules, &until_ms) == HF__ONCE_SLEEP)
        must(until_ms - now.now_ms <= rules.retry_after_ms);
    must(hf__once_begun(&record, &record.settings).attempts > 0);
    len = hf__once_write(again, &record);
    must(len <= sizeof again && hf__once_read(&copy, again, len) == HF__ONCE_READ);
    must(copy.state == record.state && copy.failures == record.failures &&
         copy.output_len == record.output_len);
}

static void read_zone(const uint8_t *data, size_t size)
{
    struct hf__schedule schedule = {.period_ms = 86400000, .at_s = 3600};

    if (!hf__zone_read(&schedule.zone, data, size))
        return;
    for (int64_t at_ms = 0; at_ms < HF__CLOCK_MAX_MS; at_ms += HF__CLOCK_MAX_MS / 20) {
        struct hf__slot slot = hf__slot_of(&schedule, at_ms);

        must(slot.start_ms <= at_ms && at_ms < slot.end_ms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4 && memcmp(data, "TZif", 4) == 0)
        read_zone(data, size);
    else
        read_record((const char *)data, size);
    return 0;
}
