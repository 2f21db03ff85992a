/* check.c - folders that come and go, and short pauses. */
#include "check.h"

#include <ftw.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void check_pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

void check_temp_dir(char *out, size_t size)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(out, size, "%s/holdfast-unit.XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(out) == NULL)
        abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

void check_remove_dir(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
