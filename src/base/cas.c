/* cas.c - compare-and-swap of 128 bits, between processes.
 *
 * By the instruction itself: what compilers and sanitizers put in the place of their builtins for
 * 16 bytes may be a mutex in this process's memory. */
#include "base/cas.h"

#if defined __x86_64__

#include <cpuid.h>

/* The first chips of this kind lack it. */
bool hf__cas_able(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
}

bool hf__cas(struct hf__pair *at, struct hf__pair from, struct hf__pair to)
{
    bool done;

    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*at), "+a"(from.low), "+d"(from.high)
                     : "b"(to.low), "c"(to.high)
                     : "memory");
    return done;
}

#elif defined __aarch64__

bool hf__cas_able(void)
{
    return true;
}

/* Acquire and release by themselves order nothing between what comes before the store and what
 * comes after it: the fence does. */
bool hf__cas(struct hf__pair *at, struct hf__pair from, struct hf__pair to)
{
    uint64_t low, high;
    uint32_t failed;

    do {
        __asm__ volatile("ldaxp %0, %1, %2" : "=&r"(low), "=&r"(high) : "Q"(*at) : "memory");
        if (low != from.low || high != from.high) {
            /* Both halves were read at one moment only if they can be stored back. */
            __asm__ volatile("stlxp %w0, %2, %3, %1"
                             : "=&r"(failed), "=Q"(*at)
                             : "r"(low), "r"(high)
                             : "memory");
            if (failed == 0)
                break;
            continue;
        }
        __asm__ volatile("stlxp %w0, %2, %3, %1"
                         : "=&r"(failed), "=Q"(*at)
                         : "r"(to.low), "r"(to.high)
                         : "memory");
    } while (failed != 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return low == from.low && high == from.high;
}

#else

bool hf__cas_able(void)
{
    return false;
}

bool hf__cas(struct hf__pair *at, struct hf__pair from, struct hf__pair to)
{
    (void)at;
    (void)from;
    (void)to;
    return false;
}

#endif
