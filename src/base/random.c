/* random.c - random bytes from the kernel. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void hf__random(void *buf, size_t len)
{
    unsigned char *at = buf;

    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0) {
            /* An owner that can be guessed is worse than no lock at all. */
            if (errno != EINTR)
                abort();
            continue;
        }
        at += got;
        len -= (size_t)got;
    }
}
