/* record.c - the record in a sidecar's slot: one line of text, so that `cat` shows the mark, with a
 * checksum, padded to the slot's size. */
#include "fence/fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "holdfast-fence-1"

enum {
    HASH_SEED = 0x66656e63, /* "fenc" */
    SUM_LEN = 21            /* " sum=" and 16 digits */
};

/* Takes "key=value" off the text and leaves *text behind it; NULL if it is not there. */
static char *take_field(char **text, const char *key)
{
    char *word = strsep(text, " ");
    size_t len = strlen(key);

    if (word == NULL || strncmp(word, key, len) != 0 || word[len] != '=')
        return NULL;
    return word + len + 1;
}

static bool take_u64(char **text, const char *key, uint64_t *out)
{
    char *value = take_field(text, key);

    return value != NULL && hf__parse_u64(value, out);
}

void hf__fence_record_encode(char out[HF__FENCE_SLOT_SIZE], const struct hf__fence_record *record)
{
    char issuer[3 * HF_FENCE_ISSUER_MAX + 1];
    int len;

    if (!hf__url_encode(issuer, sizeof issuer, record->mark.issuer))
        issuer[0] = '\0';
    memset(out, ' ', HF__FENCE_SLOT_SIZE);
    /* admitted_us is stored as its two's complement: wall clocks may be before 1970. */
    len = snprintf(out, HF__FENCE_SLOT_SIZE,
                   MAGIC " seq=%" PRIu64 " token=%" PRIu64 " at=%" PRIu64 " offset=%" PRIu64
                         " len=%" PRIu64 " hash=%" PRIu64 " issuer=%s",
                   record->seq, record->mark.token, (uint64_t)record->mark.admitted_us,
                   record->pending.offset, record->pending.len, record->pending.hash, issuer);
    (void)snprintf(out + len, HF__FENCE_SLOT_SIZE - (size_t)len, " sum=%016" PRIx64,
                   hf__hash64(out, (size_t)len, HASH_SEED));
    out[len + SUM_LEN] = ' ';
    out[HF__FENCE_SLOT_SIZE - 1] = '\n';
}

bool hf__fence_record_decode(const char in[HF__FENCE_SLOT_SIZE], struct hf__fence_record *record)
{
    char line[HF__FENCE_SLOT_SIZE + 1];
    char *text = line;
    char *sum;
    char *issuer;
    char expected[SUM_LEN + 1];
    uint64_t at;

    memset(record, 0, sizeof *record);
    memcpy(line, in, HF__FENCE_SLOT_SIZE);
    line[HF__FENCE_SLOT_SIZE] = '\0';
    sum = strstr(line, " sum=");
    if (sum == NULL || strlen(sum) < SUM_LEN)
        return false;
    (void)snprintf(expected, sizeof expected, " sum=%016" PRIx64,
                   hf__hash64(line, (size_t)(sum - line), HASH_SEED));
    if (memcmp(sum, expected, SUM_LEN) != 0)
        return false;
    *sum = '\0';
    if (strcmp(strsep(&text, " "), MAGIC) != 0)
        return false;
    if (!take_u64(&text, "seq", &record->seq) || !take_u64(&text, "token", &record->mark.token) ||
        !take_u64(&text, "at", &at) || !take_u64(&text, "offset", &record->pending.offset) ||
        !take_u64(&text, "len", &record->pending.len) ||
        !take_u64(&text, "hash", &record->pending.hash))
        return false;
    issuer = take_field(&text, "issuer");
    if (issuer == NULL || !hf__url_decode(issuer) || strlen(issuer) > HF_FENCE_ISSUER_MAX)
        return false;
    memcpy(record->mark.issuer, issuer, strlen(issuer) + 1);
    record->mark.admitted_us = (int64_t)at;
    return record->mark.token <= HF_FENCE_TOKEN_MAX && record->pending.offset <= INT64_MAX &&
           record->pending.len <= HF_FENCE_APPEND_MAX;
}

bool hf__fence_record_newest(const char *slots, size_t len, struct hf__fence_record *record,
                             bool *unsettled)
{
    struct hf__fence_record all[HF__FENCE_SLOTS];
    struct hf__fence_record *newest = NULL;
    int count = 0;

    *unsettled = false;
    for (size_t at = 0; at + HF__FENCE_SLOT_SIZE <= len && count < HF__FENCE_SLOTS;
         at += HF__FENCE_SLOT_SIZE)
        if (hf__fence_record_decode(slots + at, &all[count])) {
            if (newest == NULL || all[count].seq > newest->seq)
                newest = &all[count];
            count++;
        }
    if (newest == NULL)
        return false;
    *record = *newest;
    for (int i = 0; i < count; i++)
        if (all[i].seq + 1 == newest->seq && all[i].pending.len > 0)
            *unsettled = true;
    return true;
}
