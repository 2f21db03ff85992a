/* slots.c - locks that are numbers of one resource. */
#include "cli/say/slots.h"

#include "base/base.h"

#include <holdfast/several.h>
#include <inttypes.h>
#include <string.h>

bool cli_slot_parse(const char *name, int *len, unsigned *number)
{
    const char *mark = strrchr(name, '#');
    uint64_t found;

    if (mark == NULL || mark == name || (mark[1] == '0' && mark[2] != '\0') ||
        !hf__parse_u64(mark + 1, &found) || found >= HF_SEVERAL_MAX)
        return false;
    *len = (int)(mark - name);
    *number = (unsigned)found;
    return true;
}

int cli_slots_compare(const char *a, const char *b)
{
    unsigned left, right;
    int left_len, right_len;

    if (cli_slot_parse(a, &left_len, &left) && cli_slot_parse(b, &right_len, &right) &&
        left_len == right_len && strncmp(a, b, (size_t)left_len) == 0)
        return left < right ? -1 : left > right;
    return strcmp(a, b);
}

struct cli_slots cli_slots_find(const struct cli_lock *locks, size_t count)
{
    struct cli_slots slots = {.count = 0};
    unsigned number;
    int len;

    for (; slots.count < count; slots.count++) {
        const struct hf_lock_info *info = &locks[slots.count].info;

        if (!cli_slot_parse(info->name, &len, &number) ||
            (slots.count > 0 &&
             (len != slots.len || strncmp(info->name, slots.name, (size_t)len) != 0)))
            break;
        slots.name = info->name;
        slots.len = len;
        if (number >= slots.slots)
            slots.slots = number + 1;
        slots.held += info->held;
        if (info->waiters > slots.waiters)
            slots.waiters = info->waiters;
    }
    return slots;
}

void cli_slots_text(const struct cli_slots *slots, char out[CLI_SLOTS_TEXT_SIZE])
{
    int len = snprintf(out, CLI_SLOTS_TEXT_SIZE, "%u of %u held", slots->held, slots->slots);

    if (slots->waiters > 0 && len > 0)
        (void)snprintf(out + len, (size_t)(CLI_SLOTS_TEXT_SIZE - len), ", %" PRIu64 " waiting",
                       slots->waiters);
}
