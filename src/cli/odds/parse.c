/* parse.c - numbers with an exponent, as the options of `odds` take them. */
#include "cli/odds/odds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number at the start of text; *end is what follows it. strtod(3) alone would take
 * "nan", "0x1p3" and leading blanks too. */
static bool parse_real(const char *text, double *out, const char **end)
{
    size_t digits = strspn(text, "0123456789.");
    char *stop;

    if (digits == 0 || strpbrk(text, "xX") != NULL)
        return false;
    *out = strtod(text, &stop);
    *end = stop;
    return stop >= text + digits && isfinite(*out);
}

bool odds_parse_share(const char *text, double *out)
{
    const char *end;
    double below;

    if (!parse_real(text, out, &end))
        return false;
    if (*end == '/') {
        if (!parse_real(end + 1, &below, &end) || below <= 0)
            return false;
        *out /= below;
    } else if (*end == '%') {
        *out /= 100;
        end++;
    }
    return *end == '\0' && *out >= 0 && *out <= 1;
}

bool odds_parse_rate(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"/s", 1}, {"/m", 60}, {"/min", 60}, {"/h", 3600}, {"/d", 86400}};
    const char *end;

    if (!parse_real(text, out, &end))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *out /= units[i].seconds;
            return *out > 0 && *out <= ODDS_RATE_MAX;
        }
    }
    return false;
}

bool odds_parse_tail(const char *text, double *out)
{
    const char *end;

    return parse_real(text, out, &end) && *end == '\0' && *out >= ODDS_TAIL_MIN &&
           *out <= ODDS_TAIL_MAX;
}
