/* attempts.c - owners under way, and those that ended lately: a hash table and a list by age. */
#include "serve/attempts.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OWNER_BYTES = HF_OWNER_LEN / 2,
    BUCKETS = 8192,
    ENDED_MAX = 8192 /* that are remembered */
};
#define ENDED_NS (300 * HF__NS_PER_S) /* for how long */

struct attempt {
    struct attempt *next;  /* in its bucket */
    struct attempt *newer; /* of those that ended, by age */
    struct attempt *older;
    unsigned char owner[OWNER_BYTES];
    bool under_way;
    int cancel_fd;
    int64_t ended_ns;
};

struct attempts {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned awaiting; /* who wait for an end */
    uint64_t seed;
    struct attempt *buckets[BUCKETS];
    struct attempt *oldest;
    struct attempt *newest;
    unsigned ended_count;
};

struct attempts *attempts_open(void)
{
    struct attempts *attempts = calloc(1, sizeof *attempts);

    if (attempts == NULL)
        return NULL;
    pthread_mutex_init(&attempts->lock, NULL);
    pthread_cond_init(&attempts->ended, NULL);
    hf__random(&attempts->seed, sizeof attempts->seed);
    return attempts;
}

/* Where the owner's attempt is, or would be linked. */
static struct attempt **place_of(struct attempts *attempts, const unsigned char owner[OWNER_BYTES])
{
    uint64_t hash = hf__hash64(owner, OWNER_BYTES, attempts->seed);
    struct attempt **place = &attempts->buckets[hash % BUCKETS];

    while (*place != NULL && memcmp((*place)->owner, owner, OWNER_BYTES) != 0)
        place = &(*place)->next;
    return place;
}

static void unlink_ended(struct attempts *attempts, struct attempt *attempt)
{
    *(attempt->older != NULL ? &attempt->older->newer : &attempts->oldest) = attempt->newer;
    *(attempt->newer != NULL ? &attempt->newer->older : &attempts->newest) = attempt->older;
    attempt->newer = attempt->older = NULL;
    attempts->ended_count--;
}

static void link_ended(struct attempts *attempts, struct attempt *attempt)
{
    attempt->ended_ns = hf__now_ns();
    attempt->older = attempts->newest;
    *(attempts->newest != NULL ? &attempts->newest->newer : &attempts->oldest) = attempt;
    attempts->newest = attempt;
    attempts->ended_count++;
}

static void forget_oldest(struct attempts *attempts)
{
    struct attempt *attempt = attempts->oldest;

    *place_of(attempts, attempt->owner) = attempt->next;
    attempts->oldest = attempt->newer;
    if (attempts->oldest != NULL)
        attempts->oldest->older = NULL;
    else
        attempts->newest = NULL;
    attempts->ended_count--;
    explicit_bzero(attempt->owner, sizeof attempt->owner);
    free(attempt);
}

static void forget_old(struct attempts *attempts)
{
    int64_t before_ns = hf__now_ns() - ENDED_NS;

    while (attempts->oldest != NULL &&
           (attempts->ended_count > ENDED_MAX || attempts->oldest->ended_ns < before_ns))
        forget_oldest(attempts);
}

void attempts_close(struct attempts *attempts)
{
    if (attempts == NULL)
        return;
    while (attempts->oldest != NULL)
        forget_oldest(attempts);
    pthread_cond_destroy(&attempts->ended);
    pthread_mutex_destroy(&attempts->lock);
    free(attempts);
}

/* A new one, linked at its place; NULL: no memory. */
static struct attempt *add(struct attempt **place, const unsigned char owner[OWNER_BYTES])
{
    struct attempt *attempt = calloc(1, sizeof *attempt);

    if (attempt == NULL)
        return NULL;
    memcpy(attempt->owner, owner, OWNER_BYTES);
    attempt->cancel_fd = -1;
    *place = attempt;
    return attempt;
}

enum hf_status attempts_begin(struct attempts *attempts, const char *owner, int cancel_fd,
                              struct attempt **out)
{
    unsigned char raw[OWNER_BYTES];
    struct attempt **place;
    enum hf_status status = HF_UNKNOWN;

    (void)hf__hex_decode(raw, sizeof raw, owner); /* it was checked */
    pthread_mutex_lock(&attempts->lock);
    forget_old(attempts);
    place = place_of(attempts, raw);
    if (*place == NULL) {
        *out = add(place, raw);
        status = *out != NULL ? HF_OK : HF_NOMEM;
    }
    if (status == HF_OK) {
        (*out)->under_way = true;
        (*out)->cancel_fd = cancel_fd;
    }
    pthread_mutex_unlock(&attempts->lock);
    explicit_bzero(raw, sizeof raw);
    return status;
}

void attempts_end(struct attempts *attempts, struct attempt *attempt)
{
    pthread_mutex_lock(&attempts->lock);
    attempt->under_way = false;
    attempt->cancel_fd = -1;
    link_ended(attempts, attempt);
    if (attempts->awaiting > 0)
        pthread_cond_broadcast(&attempts->ended);
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_settle(struct attempts *attempts, const char *owner)
{
    const uint64_t one = 1;
    unsigned char raw[OWNER_BYTES];
    struct attempt **place;

    (void)hf__hex_decode(raw, sizeof raw, owner);
    pthread_mutex_lock(&attempts->lock);
    attempts->awaiting++;
    for (;;) {
        place = place_of(attempts, raw);
        if (*place == NULL || !(*place)->under_way)
            break;
        if ((*place)->cancel_fd >= 0)
            (void)!write((*place)->cancel_fd, &one, sizeof one);
        pthread_cond_wait(&attempts->ended, &attempts->lock);
    }
    attempts->awaiting--;
    if (*place != NULL)
        unlink_ended(attempts, *place);
    if (*place != NULL || add(place, raw) != NULL)
        link_ended(attempts, *place);
    forget_old(attempts);
    pthread_mutex_unlock(&attempts->lock);
    explicit_bzero(raw, sizeof raw);
}
