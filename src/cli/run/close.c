/* close.c - what a forked watchdog must not keep open. */
#include "cli/run/run.h"

#include <unistd.h>

void run_close_others(const int *keep, size_t count)
{
    unsigned from = 0;

    for (;;) {
        int next = -1; /* the smallest one to keep at or above from */

        for (size_t i = 0; i < count; i++) {
            if (keep[i] >= (int)from && (next < 0 || keep[i] < next))
                next = keep[i];
        }
        if (next < 0)
            break;
        if ((unsigned)next > from)
            (void)close_range(from, (unsigned)next - 1, 0);
        from = (unsigned)next + 1;
    }
    (void)close_range(from, ~0u, 0);
}
