/* vouched.c - pairs of owner and token that the server itself has told us, and the ttl it has on
 * record.
 *
 * A hold is an owner with a token. The bare commands of newer servers compare the owner only, which
 * is enough for a pair from here: an owner is drawn anew for every attempt, so if the key names
 * this owner now, it is by the very grant that this token came from. Any other pair goes by a
 * script, which compares both; and so does a detached one, whose claim may have been sent again by
 * whoever handed it on to us, and have been granted again after its end. A renewal with another ttl
 * goes by a script, too, which puts it on record: the time of the last renewal follows from what is
 * gone of its ttl. */
#include "stores/redis/redis.h"
#include "base/base.h"

#include <string.h>

static struct rd_vouched *cell_of(struct rd_store *store, const char *owner)
{
    return &store->vouched[hf__hash64(owner, HF_OWNER_LEN, 0) % RD_VOUCHED_MAX];
}

void rd_vouch(struct rd_store *store, const char *owner, uint64_t token, uint32_t ttl_ms)
{
    struct rd_vouched *pair = cell_of(store, owner);

    pthread_mutex_lock(&store->lock);
    memcpy(pair->owner, owner, HF_OWNER_LEN);
    pair->token = token;
    pair->ttl_ms = ttl_ms;
    pthread_mutex_unlock(&store->lock);
}

bool rd_vouched(struct rd_store *store, const struct hf_claim *claim)
{
    const struct rd_vouched *pair = cell_of(store, claim->owner);
    bool known;

    if (claim->detached)
        return false;
    pthread_mutex_lock(&store->lock);
    known = claim->token != 0 && pair->token == claim->token &&
            (claim->ttl_ms == 0 || pair->ttl_ms == claim->ttl_ms) &&
            memcmp(pair->owner, claim->owner, HF_OWNER_LEN) == 0;
    pthread_mutex_unlock(&store->lock);
    return known;
}
