/* holds.c - what this client has in etcd on shared leases. */
#include "stores/etcd/holds.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64
#define FORGET_NS  (600 * HF__NS_PER_S) /* how long a hold that expired is remembered as such */

struct ec_hold *ec_hold_new(const char *owner, const char *name)
{
    size_t size = strlen(name) + 1;
    struct ec_hold *hold = calloc(1, sizeof *hold + size);

    if (hold == NULL)
        return NULL;
    hf__copy_printable(hold->owner, sizeof hold->owner, owner);
    memcpy(hold->name, name, size);
    return hold;
}

static struct ec_hold **bucket(const struct ec_holds *holds, const char *owner)
{
    return &holds->buckets[hf__hash64(owner, strlen(owner), 0) & (holds->size - 1)];
}

/* Without memory the chains just get longer. */
static void grow(struct ec_holds *holds)
{
    struct ec_holds bigger = {.size = holds->size > 0 ? 2 * holds->size : FIRST_SIZE};

    bigger.buckets = calloc(bigger.size, sizeof *bigger.buckets);
    if (bigger.buckets == NULL)
        return;
    for (size_t i = 0; i < holds->size; i++)
        while (holds->buckets[i] != NULL) {
            struct ec_hold *hold = holds->buckets[i];

            holds->buckets[i] = hold->next;
            ec_holds_add(&bigger, hold);
        }
    free(holds->buckets);
    *holds = bigger;
}

void ec_holds_add(struct ec_holds *holds, struct ec_hold *hold)
{
    struct ec_hold **at;

    if (holds->count >= holds->size)
        grow(holds);
    if (holds->size == 0) {
        free(hold); /* no table at all: the key is then looked after like an adopted one */
        return;
    }
    at = bucket(holds, hold->owner);
    hold->next = *at;
    *at = hold;
    holds->count++;
}

struct ec_hold *ec_holds_find(const struct ec_holds *holds, const char *owner)
{
    struct ec_hold *hold = holds->size > 0 ? *bucket(holds, owner) : NULL;

    while (hold != NULL && strcmp(hold->owner, owner) != 0)
        hold = hold->next;
    return hold;
}

struct ec_hold *ec_holds_remove(struct ec_holds *holds, const char *owner)
{
    struct ec_hold **at = holds->size > 0 ? bucket(holds, owner) : NULL;
    struct ec_hold *hold;

    while (at != NULL && *at != NULL && strcmp((*at)->owner, owner) != 0)
        at = &(*at)->next;
    if (at == NULL || *at == NULL)
        return NULL;
    hold = *at;
    *at = hold->next;
    hold->next = NULL;
    holds->count--;
    return hold;
}

bool ec_holds_overdue(struct ec_holds *holds, int64_t lease, int64_t now_ns)
{
    bool overdue = false;

    for (size_t i = 0; i < holds->size; i++)
        for (struct ec_hold **at = &holds->buckets[i]; *at != NULL;) {
            struct ec_hold *hold = *at;

            if (hold->news.lease == lease && hold->news.until_ns <= now_ns) {
                overdue = true;
                hold->news.lease = 0;
            }
            if (hold->news.lease == 0 && hold->news.until_ns <= now_ns - FORGET_NS) {
                *at = hold->next;
                holds->count--;
                free(hold);
            } else {
                at = &hold->next;
            }
        }
    return overdue;
}

bool ec_holds_use(const struct ec_holds *holds, int64_t lease)
{
    for (size_t i = 0; i < holds->size; i++)
        for (const struct ec_hold *hold = holds->buckets[i]; hold != NULL; hold = hold->next)
            if (hold->news.lease == lease)
                return true;
    return false;
}

void ec_holds_each(const struct ec_holds *holds, void (*fn)(struct ec_hold *hold, void *data),
                   void *data)
{
    for (size_t i = 0; i < holds->size; i++)
        for (struct ec_hold *hold = holds->buckets[i]; hold != NULL; hold = hold->next)
            fn(hold, data);
}

void ec_holds_release(struct ec_holds *holds)
{
    for (size_t i = 0; i < holds->size; i++)
        while (holds->buckets[i] != NULL) {
            struct ec_hold *hold = holds->buckets[i];

            holds->buckets[i] = hold->next;
            explicit_bzero(hold->owner, sizeof hold->owner);
            free(hold);
        }
    free(holds->buckets);
    *holds = (struct ec_holds){0};
}
