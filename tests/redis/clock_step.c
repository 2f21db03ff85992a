/* clock_step.c - preloaded into a server, moves its wall clock by the seconds that the file named
 * by $CLOCK_STEP_FILE holds, at any time. (libfaketime does the same but cannot start a program
 * that links jemalloc, which asks for the time inside the first malloc.) Built by the test itself,
 * because the server it goes into is not built with our sanitizers. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* No malloc and no stdio: this runs before either is safe. */
static long step_seconds(void)
{
    const char *path = getenv("CLOCK_STEP_FILE");
    char text[32];
    long fd;
    long len;

    if (path == NULL)
        return 0;
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    len = syscall(SYS_read, fd, text, sizeof text - 1);
    (void)syscall(SYS_close, fd);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += step_seconds();
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
