/* time.c - the two clocks, and waiting by the one that counts during suspend. */
#include "base/base.h"

#include <errno.h>
#include <time.h>

static int64_t read_clock(clockid_t clock, int64_t units_per_s)
{
    struct timespec t;

    if (clock_gettime(clock, &t) != 0)
        __builtin_trap(); /* cannot happen with a clock that the kernel has */
    return (int64_t)t.tv_sec * units_per_s + (int64_t)t.tv_nsec / (HF__NS_PER_S / units_per_s);
}

int64_t hf__now_ns(void)
{
    return read_clock(CLOCK_BOOTTIME, HF__NS_PER_S);
}

int64_t hf__wall_us(void)
{
    return read_clock(CLOCK_REALTIME, 1000000);
}

int64_t hf__time_add(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t hf__ms_to_ns(int64_t ms)
{
    int64_t ns;

    return __builtin_mul_overflow(ms, (int64_t)HF__NS_PER_MS, &ns) ? INT64_MAX : ns;
}

int hf__poll_until(struct pollfd *fds, nfds_t count, int64_t deadline_ns)
{
    for (;;) {
        int64_t left = deadline_ns > 0 ? deadline_ns - hf__now_ns() : 0;
        struct timespec timeout = {0};
        int ready;

        /* ppoll counts by CLOCK_MONOTONIC, which stands still during suspend: waking at least
         * once a minute bounds how late a deadline is noticed after one. */
        if (left > 60 * HF__NS_PER_S)
            left = 60 * HF__NS_PER_S;
        if (left > 0) {
            timeout.tv_sec = left / HF__NS_PER_S;
            timeout.tv_nsec = left % HF__NS_PER_S;
        }
        ready = ppoll(fds, count, &timeout, NULL);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return ready;
        if (hf__now_ns() >= deadline_ns)
            return 0;
    }
}

void hf__sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / HF__NS_PER_S, .tv_nsec = ns % HF__NS_PER_S};

    (void)nanosleep(&t, NULL);
}
