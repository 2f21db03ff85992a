/* referee.c - the ledgers, and what is noted in them. */
#include "torture/torture.h"

#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

const char *torture_name(const struct torture_plan *plan, int lock, char out[TORTURE_NAME_SIZE])
{
    (void)snprintf(out, TORTURE_NAME_SIZE, "%s/%d", plan->prefix, lock);
    return out;
}

uint64_t torture_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int64_t torture_below(uint64_t *state, uint64_t bound)
{
    return (int64_t)(torture_random(state) % bound);
}

struct torture_referee *torture_referee_new(const struct torture_plan *plan)
{
    struct torture_referee *referee =
        mmap(NULL, sizeof *referee, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;

    if (referee == MAP_FAILED)
        return NULL;
    referee->plan = plan;
    referee->over_fd = eventfd(0, EFD_CLOEXEC);
    if (referee->over_fd < 0) {
        (void)munmap(referee, sizeof *referee);
        return NULL;
    }
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&referee->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return referee;
}

void torture_referee_free(struct torture_referee *referee)
{
    if (referee == NULL)
        return;
    (void)close(referee->over_fd);
    (void)munmap(referee, sizeof *referee);
}

/* Somebody else's kill may leave it locked. What is guarded is whole all the same: two words. */
void torture_section_enter(struct torture_referee *referee, struct torture_worker *me)
{
    atomic_store(&me->writing, true);
    if (pthread_mutex_lock(&referee->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&referee->mutex);
}

void torture_section_leave(struct torture_referee *referee, struct torture_worker *me)
{
    pthread_mutex_unlock(&referee->mutex);
    atomic_store(&me->writing, false);
}

/* The clock is read before asking how much is left: what is published is never later than the real
 * deadline. */
bool torture_publish(struct torture_worker *me, struct hf_lease *lease, int lock)
{
    int64_t now_ns = hf__now_ns();
    int64_t left_ms = hf_lease_remaining_ms(lease);

    if (left_ms <= 0)
        return false;
    atomic_store(&me->token, hf_lease_token(lease));
    atomic_store(&me->until_ns, now_ns + left_ms * HF__NS_PER_MS);
    atomic_store(&me->lock, lock);
    return true;
}

static void breach(struct torture_referee *referee, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void breach(struct torture_referee *referee, const char *format, ...)
{
    unsigned at = atomic_fetch_add(&referee->breach_count, 1);
    char text[TORTURE_BREACH_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (referee->plan->talks)
        printf("%s\n", text);
    if (at < TORTURE_BREACHES_MAX)
        memcpy(referee->breaches[at], text, sizeof text);
}

static void check_overlap(struct torture_referee *referee, struct torture_worker *me,
                          struct hf_lease *lease, int lock)
{
    for (int i = 0; i < referee->plan->workers; i++) {
        struct torture_worker *other = &referee->workers[i];
        unsigned long long token = atomic_load(&other->token);

        if (other == me || atomic_load(&other->lock) != lock ||
            atomic_load(&other->until_ns) <= hf__now_ns() || atomic_load(&other->doomed))
            continue;
        if (atomic_load(&other->lock) != lock || atomic_load(&other->token) != token ||
            hf_lease_remaining_ms(lease) <= 0)
            continue;
        atomic_fetch_add(&referee->overlaps, 1);
        breach(referee, "overlap: lock %d, tokens %llu and %llu", lock, token,
               (unsigned long long)hf_lease_token(lease));
    }
}

static void check_order(struct torture_referee *referee, struct hf_lease *lease, int lock)
{
    struct torture_ledger *ledger = &referee->ledgers[lock];
    unsigned long long token = hf_lease_token(lease);
    unsigned long long last = atomic_load(&ledger->last_token);

    while (last < token && !atomic_compare_exchange_weak(&ledger->last_token, &last, token))
        ;
    if (last == token || (last > token && hf_lease_remaining_ms(lease) > 0)) {
        atomic_fetch_add(&referee->disorders, 1);
        breach(referee, "order: lock %d, token %llu after %llu", lock, token, last);
    }
}

static void raise_to(atomic_llong *longest, long long value)
{
    long long was = atomic_load(longest);

    while (was < value && !atomic_compare_exchange_weak(longest, &was, value))
        ;
}

static void note_handover(struct torture_handovers *handovers, int64_t ns)
{
    unsigned at = atomic_fetch_add(&handovers->count, 1);

    if (at < TORTURE_HANDOVERS_MAX)
        handovers->ns[at] = ns;
}

void torture_judge(struct torture_referee *referee, struct torture_worker *me,
                   struct hf_lease *lease, int lock, int64_t asked_ns)
{
    struct torture_ledger *ledger = &referee->ledgers[lock];
    int64_t now_ns = hf__now_ns();
    int64_t before_ns = atomic_exchange(&ledger->last_hold_ns, now_ns);

    check_overlap(referee, me, lease, lock);
    check_order(referee, lease, lock);
    if (before_ns != 0)
        raise_to(&ledger->longest_gap_ns, now_ns - before_ns);
    raise_to(&referee->longest_wait_ns, now_ns - asked_ns);
    for (int fault = 0; fault < TORTURE_FAULTS; fault++) {
        int64_t since_ns = atomic_exchange(&ledger->orphaned_ns[fault], 0);

        if (since_ns != 0)
            note_handover(&referee->handovers[fault], now_ns - since_ns);
    }
    atomic_fetch_add(&referee->holds, 1);
}

void torture_note(struct torture_referee *referee, enum hf_status status,
                  const struct hf_error *err)
{
    atomic_fetch_add(&referee->answers[status], 1);
    if (status != HF_OK && status != HF_BUSY)
        hf__copy_printable(referee->troubles[status], HF_ERROR_TEXT_SIZE, err->text);
}

struct torture_verdict torture_sum(const struct torture_referee *referee)
{
    struct torture_verdict sum = {.sound = false};

    for (int i = 0; i < TORTURE_LOCKS; i++) {
        const struct torture_ledger *ledger = &referee->ledgers[i];

        sum.fenced_writes += ledger->fenced_writes;
        sum.fenced_lost += ledger->fenced_writes - ledger->fenced;
        sum.plain_writes += ledger->plain_writes;
        sum.plain_lost += ledger->plain_writes - ledger->plain;
        if (atomic_load(&ledger->longest_gap_ns) > sum.longest_gap_ns)
            sum.longest_gap_ns = atomic_load(&ledger->longest_gap_ns);
    }
    for (int i = 0; i < referee->plan->workers; i++)
        sum.cut_connections += atomic_load(&referee->workers[i].cut_count);
    sum.sound = atomic_load(&referee->overlaps) == 0 && atomic_load(&referee->disorders) == 0 &&
                sum.fenced_lost == 0;
    return sum;
}

static int by_length(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;

    return one < two ? -1 : one > two;
}

int64_t torture_handover_ns(struct torture_handovers *handovers, unsigned per_mille)
{
    unsigned count = atomic_load(&handovers->count);

    if (count > TORTURE_HANDOVERS_MAX)
        count = TORTURE_HANDOVERS_MAX;
    if (count == 0)
        return -1;
    qsort(handovers->ns, count, sizeof handovers->ns[0], by_length);
    return handovers->ns[(size_t)(count - 1) * per_mille / 1000];
}
