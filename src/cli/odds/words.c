/* words.c - frequencies, shares and long times as people say them. */
#include "cli/odds/odds.h"

#include "base/base.h"

#include <string.h>

#define DAY_S  86400.0
#define YEAR_S (365.25 * DAY_S)

const char *odds_count(char out[ODDS_WORDS], double count)
{
    char digits[ODDS_WORDS / 2];
    size_t len, used = 0;

    if (count >= 1e15) {
        (void)snprintf(out, ODDS_WORDS, "%.1e", count);
        return out;
    }
    len = (size_t)snprintf(digits, sizeof digits, "%.0f", count);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

/* Two digits: "1", "2.8", "37", "10,000". */
static const char *number(char out[ODDS_WORDS], double value)
{
    if (value >= 9.95)
        return odds_count(out, value);
    (void)snprintf(out, ODDS_WORDS, "%.2g", value);
    return out;
}

const char *odds_duration(char out[ODDS_WORDS], double seconds)
{
    char text[ODDS_WORDS];

    if (seconds >= YEAR_S)
        (void)snprintf(out, ODDS_WORDS, "%.40s years", number(text, seconds / YEAR_S));
    else if (seconds >= 2 * DAY_S)
        (void)snprintf(out, ODDS_WORDS, "%.40s days", number(text, seconds / DAY_S));
    else if (seconds < 0.001)
        (void)snprintf(out, ODDS_WORDS, "%.2gms", seconds * 1000);
    else
        (void)hf__format_duration(out, ODDS_WORDS, (int64_t)(seconds * 1000 + 0.5));
    return out;
}

const char *odds_frequency(char out[ODDS_WORDS], double per_s)
{
    char text[ODDS_WORDS];

    if (per_s <= 0)
        (void)snprintf(out, ODDS_WORDS, "never");
    else if (per_s >= 0.95)
        (void)snprintf(out, ODDS_WORDS, "%.40s per second", number(text, per_s));
    else
        (void)snprintf(out, ODDS_WORDS, "one every %.50s", odds_duration(text, 1 / per_s));
    return out;
}

const char *odds_share_words(char out[ODDS_WORDS], double share)
{
    char text[ODDS_WORDS];

    if (share <= 0 || share >= 1)
        (void)snprintf(out, ODDS_WORDS, share <= 0 ? "none" : "all");
    else
        (void)snprintf(out, ODDS_WORDS, "one in %.50s", number(text, 1 / share));
    return out;
}

int odds_rows(const struct hf__odds_story *story)
{
    int rows = 1;

    while (rows < HF__ODDS_ROWS && story->rows[rows].ttl_s * 1000 <= HF_TTL_MAX_MS)
        rows++;
    return rows;
}
