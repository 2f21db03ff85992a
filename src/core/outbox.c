/* outbox.c - what the relay of an outbox decides. */
#include "core/outbox.h"

#include "base/backoff.h"
#include "base/base.h"

#include <string.h>

enum { HTTP_STALE = 412, HASH_SEED = 0x6f7574 };

enum hf__outbox_verdict hf__outbox_http_verdict(long code)
{
    if (code >= 200 && code <= 299)
        return HF__OUTBOX_DELIVERED;
    return code == HTTP_STALE ? HF__OUTBOX_STALE : HF__OUTBOX_RETRY;
}

struct hf__outbox_mark hf__outbox_failed(unsigned attempts, uint64_t most, int64_t asked_ms,
                                         uint32_t dice)
{
    struct hf__backoff backoff = {.first_ns = HF__OUTBOX_FIRST_MS * HF__NS_PER_MS,
                                  .most_ns = HF__OUTBOX_MOST_MS * HF__NS_PER_MS,
                                  .failures = attempts};
    struct hf__outbox_mark mark = {.attempts = attempts < INT32_MAX ? attempts + 1 : attempts};

    if (mark.attempts >= most)
        mark.delay_ms = -1;
    else if (asked_ms >= 0)
        mark.delay_ms = asked_ms < HF__OUTBOX_ASKED_MAX_MS ? asked_ms : HF__OUTBOX_ASKED_MAX_MS;
    else
        mark.delay_ms = hf__backoff_failed(&backoff, 0, dice) / HF__NS_PER_MS;
    return mark;
}

bool hf__outbox_uid_valid(const char *uid)
{
    size_t len = strspn(uid, "0123456789abcdef-");

    return len > 0 && len <= HF__OUTBOX_UID_MAX && uid[len] == '\0';
}

/* Cuts the next word off *rest; NULL if there is none. */
static bool next_word(const char **rest, char *out, size_t size)
{
    size_t len = strcspn(*rest, " ");

    if (len == 0 || len >= size)
        return false;
    memcpy(out, *rest, len);
    out[len] = '\0';
    *rest += len + ((*rest)[len] == ' ');
    return true;
}

void hf__outbox_read_line(const char *line, struct hf__outbox_said *out)
{
    char word[8];
    const char *rest = line;

    *out = (struct hf__outbox_said){.word = HF__OUTBOX_SAID_NOTHING, .asked_ms = -1};
    if (!next_word(&rest, word, sizeof word) || !next_word(&rest, out->uid, sizeof out->uid) ||
        !hf__outbox_uid_valid(out->uid))
        return;
    if (strcmp(word, "ok") == 0 && *rest == '\0')
        out->word = HF__OUTBOX_SAID_OK;
    if (strcmp(word, "retry") == 0 &&
        (*rest == '\0' || hf__parse_duration_ms(rest, &out->asked_ms)))
        out->word = HF__OUTBOX_SAID_RETRY;
}

void hf__outbox_link(struct hf__outbox_item *items, size_t count, int *table, size_t table_size)
{
    for (size_t i = 0; i < table_size; i++)
        table[i] = -1;
    for (size_t i = 0; i < count; i++) {
        size_t at = hf__hash64(items[i].key, strlen(items[i].key), HASH_SEED) & (table_size - 1);

        while (table[at] >= 0 && strcmp(items[table[at]].key, items[i].key) != 0)
            at = (at + 1) & (table_size - 1);
        items[i].before = table[at];
        table[at] = (int)i;
    }
}

static bool may_be_sent(const struct hf__outbox_item *items, const struct hf__outbox_item *item)
{
    const struct hf__outbox_item *before = item->before >= 0 ? &items[item->before] : NULL;

    if (item->step != HF__OUTBOX_WAITING || item->blocker != 0)
        return false;
    return before == NULL || (before->step == HF__OUTBOX_DONE && before->attempts == 0);
}

int hf__outbox_next(const struct hf__outbox_item *items, size_t count, size_t from)
{
    for (size_t i = from; i < count; i++)
        if (may_be_sent(items, &items[i]))
            return (int)i;
    return -1;
}

uint64_t hf__outbox_parked_by(const struct hf__outbox_item *items, size_t item)
{
    const struct hf__outbox_item *at = &items[item];

    for (; at->step == HF__OUTBOX_WAITING && at->blocker == 0; at = &items[at->before])
        if (at->before < 0)
            return 0;
    if (at->step == HF__OUTBOX_WAITING)
        return at->blocker;
    return at->step == HF__OUTBOX_FAILED ? at->id : 0;
}
