/* any.c - one of several locks: by the store's own slot, or by claims of one lock each.
 *
 * A store that serves waiters in the order they came is asked by a thread for every lock, so that
 * the caller stands in every queue; all but the first to be granted stop waiting, and give back
 * what they were granted all the same. One without queues is asked for one lock after the other,
 * with a pause after the last: there is no place in a queue to be kept. */
#include "base/patience.h"
#include "client/client.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TAKE_BACK_MS 1000 /* what ending a hold of unknown fate is given */

/* An owner of its own for a claim that is made a second time. */
static struct hf_claim anew(const struct hf_claim *claim, char owner[HF_OWNER_LEN + 1])
{
    unsigned char raw[HF_OWNER_LEN / 2];
    struct hf_claim again = *claim;

    hf__random(raw, sizeof raw);
    hf__hex_encode(owner, raw, sizeof raw);
    again.owner = owner;
    again.deadline_ns = hf__now_ns() + HF__REQUEST_MS * HF__NS_PER_MS;
    return again;
}

static void tell_owner(struct hf_grant *grant, const struct hf_claim *claim)
{
    if (grant->owner[0] == '\0')
        memcpy(grant->owner, claim->owner, sizeof grant->owner);
}

/* Ends what an owner may hold that only we know: with the token it was granted, or with 0 whatever
 * that is. */
static void take_back(struct hf_store_base *base, const struct hf_claim *claim, uint64_t token,
                      int64_t limit_ms)
{
    struct hf_claim undo = *claim;

    undo.token = token;
    undo.deadline_ns = hf__now_ns() + limit_ms * HF__NS_PER_MS;
    (void)base->ops->release(base, &undo, NULL);
}

/* Tries each of them once. HF_BUSY: others hold them all; the error is about the first. */
static enum hf_status try_each(struct hf_store_base *base, const struct hf_claim *claims,
                               size_t count, size_t *which, struct hf_grant *grant,
                               struct hf_error *err)
{
    struct hf_error ignored;

    for (size_t i = 0; i < count; i++) {
        char owner[HF_OWNER_LEN + 1];
        struct hf_claim claim = anew(&claims[i], owner);
        enum hf_status status;

        claim.wait_until_ns = 0;
        *which = i;
        memset(grant, 0, sizeof *grant);
        status = base->ops->acquire(base, &claim, grant, i == 0 ? err : &ignored);
        if (status == HF_OK)
            tell_owner(grant, &claim);
        else if (status != HF_BUSY && i > 0)
            *err = ignored;
        if (status == HF_UNKNOWN)
            take_back(base, &claim, 0, TAKE_BACK_MS);
        if (status != HF_BUSY)
            return status;
    }
    *which = 0;
    return HF_BUSY;
}

/* Round after round. */
static enum hf_status take_turns(const struct hf_store *store, const struct hf_claim *claims,
                                 size_t count, size_t *which, struct hf_grant *grant,
                                 struct hf_error *err)
{
    const struct hf__patience patience = {.deadline_ns = claims[0].wait_until_ns,
                                          .cancel_fd = claims[0].cancel_fd};
    struct hf__wait_rounds rounds;

    hf__wait_rounds_init(&rounds, claims[0].wait_until_ns);
    for (;;) {
        enum hf_status status = try_each(store->base, claims, count, which, grant, err);
        struct hf__wait_step step;
        uint32_t dice;

        hf__random(&dice, sizeof dice);
        step = hf__wait_unqueued(&rounds, status, hf__now_ns(), dice);
        if (step.next == HF__WAIT_RETURN)
            return status;
        if (hf__patience_pause(&patience, step.until_ns) == HF__WAITED_CANCELLED)
            return hf__fail_lock(err, HF_CANCELLED, claims[0].name, store->url,
                                 ": cancelled while waiting for it and others");
    }
}

/* What the threads of one wait share. */
struct party {
    const struct hf_store *store;
    const struct hf_claim *claims;
    pthread_mutex_t lock; /* for what follows */
    int stop_fd;          /* eventfd: readable once nobody needs to wait any more */
    int over_fd;          /* eventfd: one of them has come to an end */
    bool over;            /* status, which, grant and err are somebody's answer */
    enum hf_status status;
    size_t which;
    struct hf_grant grant;
    struct hf_error err;
};

/* One of the threads: in one queue. */
struct waiter {
    struct party *party;
    size_t index;
    pthread_t thread;
};

/* The first grant wins; else the first that gave up. True: it is the answer. */
static bool offer(struct party *party, size_t index, enum hf_status status,
                  const struct hf_grant *grant, const struct hf_error *err)
{
    bool first;

    pthread_mutex_lock(&party->lock);
    first = !party->over || (status == HF_OK && party->status != HF_OK);
    if (first) {
        party->over = true;
        party->status = status;
        party->which = index;
        party->grant = *grant;
        party->err = *err;
    }
    pthread_mutex_unlock(&party->lock);
    return first;
}

static void *wait_for_one(void *data)
{
    const struct waiter *waiter = data;
    struct party *party = waiter->party;
    struct hf_store_base *base = party->store->base;
    char owner[HF_OWNER_LEN + 1];
    struct hf_claim claim = anew(&party->claims[waiter->index], owner);
    struct hf_grant grant = {0};
    struct hf_error err;
    enum hf_status status;

    (void)hf__ok(&err);
    claim.cancel_fd = party->stop_fd;
    status = base->ops->acquire(base, &claim, &grant, &err);
    if (status == HF_OK)
        tell_owner(&grant, &claim);
    if (!offer(party, waiter->index, status, &grant, &err) && status == HF_OK) {
        /* A second grant: it goes to the next in line. */
        claim.owner = grant.owner;
        take_back(base, &claim, grant.token, HF__REQUEST_MS);
    }
    if (status == HF_UNKNOWN)
        take_back(base, &claim, 0, TAKE_BACK_MS);
    (void)eventfd_write(party->stop_fd, 1);
    (void)eventfd_write(party->over_fd, 1);
    explicit_bzero(owner, sizeof owner);
    return NULL;
}

/* How many are on their way. */
static size_t send_out(struct party *party, struct waiter *waiters, size_t count)
{
    sigset_t all, old;
    size_t sent;

    (void)sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the program's business */
    for (sent = 0; sent < count; sent++) {
        waiters[sent] = (struct waiter){.party = party, .index = sent};
        if (pthread_create(&waiters[sent].thread, NULL, wait_for_one, &waiters[sent]) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return sent;
}

/* Until one of them has an answer; true if the caller cancelled before that. */
static bool sleep_till_over(const struct party *party)
{
    const struct hf__patience patience = {.deadline_ns = HF_NEVER,
                                          .cancel_fd = party->claims[0].cancel_fd};

    return hf__patience_wait(&patience, party->over_fd, POLLIN) == HF__WAITED_CANCELLED;
}

static enum hf_status stand_in_queues(struct party *party, size_t count, struct hf_error *err)
{
    struct waiter waiters[HF_SEVERAL_MAX];
    size_t sent = send_out(party, waiters, count);
    bool cancelled = false;

    if (sent == count)
        cancelled = sleep_till_over(party);
    (void)eventfd_write(party->stop_fd, 1);
    for (size_t i = 0; i < sent; i++)
        pthread_join(waiters[i].thread, NULL);
    *err = party->err;
    if (party->over && party->status == HF_OK)
        return HF_OK;
    if (sent < count)
        return hf__fail_lock(err, HF_NOMEM, party->claims[0].name, party->store->url,
                             ": out of threads to wait for it and others");
    return cancelled && !hf__wait_may_pass(party->status) ? HF_CANCELLED : party->status;
}

static enum hf_status wait_for_each(const struct hf_store *store, const struct hf_claim *claims,
                                    size_t count, size_t *which, struct hf_grant *grant,
                                    struct hf_error *err)
{
    struct party party = {.store = store,
                          .claims = claims,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                          .over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    enum hf_status status;

    if (party.stop_fd >= 0 && party.over_fd >= 0)
        status = stand_in_queues(&party, count, err);
    else
        status = hf__fail_lock(err, HF_NOMEM, claims[0].name, store->url,
                               ": out of descriptors to wait for it and others");
    *which = party.which;
    *grant = party.grant;
    explicit_bzero(party.grant.owner, sizeof party.grant.owner);
    if (party.stop_fd >= 0)
        (void)close(party.stop_fd);
    if (party.over_fd >= 0)
        (void)close(party.over_fd);
    pthread_mutex_destroy(&party.lock);
    return status;
}

enum hf_status hf__any_ask(const struct hf_store *store, const struct hf_claim *claims,
                           size_t count, size_t *which, struct hf_grant *grant,
                           struct hf_error *err)
{
    struct hf_store_base *base = store->base;
    enum hf_status status = HF_UNSUPPORTED;

    if (HF__OPERATION(base->ops, acquire_any) != NULL)
        status = base->ops->acquire_any(base, claims, count, which, grant, err);
    if (status != HF_UNSUPPORTED)
        return status;
    if ((hf__features(base) & HF_FEATURE_FAIR) == 0)
        return take_turns(store, claims, count, which, grant, err);
    status = try_each(base, claims, count, which, grant, err);
    if (status != HF_BUSY || claims[0].wait_until_ns == 0)
        return status;
    return wait_for_each(store, claims, count, which, grant, err);
}
