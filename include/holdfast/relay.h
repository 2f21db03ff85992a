/* holdfast/relay.h - locks on behalf of others, whose owners they drew themselves.
 *
 * For programs that stand between a store and clients that cannot open it: what a client asks for
 * goes to the store as it is, and the answer goes back. There is no lease here, no keeper and no
 * deadline: the client has them. So what is taken is always detached, and ends with its ttl unless
 * the client has it renewed, through this program or any other.
 *
 * hf_acquire would draw an owner of its own, and hf_adopt with hf_renew asks the store twice. Each
 * of these calls asks it once. What may pass (HF_UNREACHABLE, HF_QUARANTINE, HF_UNKNOWN) is not
 * waited out, not even in the middle of a wait: another attempt needs another owner, and that is
 * the client's to draw.
 *
 * The claim is that of holdfast/store.h. Of its members the caller sets
 *
 *     name, owner     always. An owner has HF_OWNER_LEN lower-case hex digits
 *     token           renew: what the grant said; release: likewise, or 0: whatever the owner holds
 *     ttl_ms          acquire; renew, where 0 only looks
 *     label           acquire: NULL means host/pid/program; made printable, and cut
 *     wait_until_ns   acquire, by CLOCK_BOOTTIME: 0 does not wait, HF_NEVER has no limit
 *     cancel_fd       acquire: -1, or stop waiting once it is readable. 0 is a descriptor
 *     deadline_ns     when a request is given up; 0: in five seconds
 *
 * and the others are not looked at. The calls belong to any thread, many at a time; a store that
 * was opened read-only refuses them with HF_INVALID. */
#ifndef HOLDFAST_RELAY_H
#define HOLDFAST_RELAY_H

#include <holdfast/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hf_relay_acquire - take claim->name for claim->owner.
 *
 * An owner is one attempt: one that holds the lock already gets the token it has, or HF_BUSY, and
 * never a second one. Blocks until claim->wait_until_ns and for the time of a request.
 *
 * HF_OK           *grant has the token, the owner it was granted to (Redlock may have drawn another
 *                 one than the claim's), the ttl, and sent_at_ns, from which that counts. Whether
 *                 this is still in time is for the client to say
 * HF_INVALID      no such name, owner or ttl, or a token; the store was not asked
 * HF_UNSUPPORTED  the store has no detached leases; it was not asked
 * HF_CORRUPT      also for a grant whose token is out of range
 * and what hf_acquire answers otherwise */
HF_API HF_MUST_CHECK enum hf_status hf_relay_acquire(struct hf_store *store,
                                                     const struct hf_claim *claim,
                                                     struct hf_grant *grant, struct hf_error *err);

/* hf_relay_renew - extend the hold of claim->owner with claim->token, or only look at it.
 *
 * Compares owner and token, never creates. grant->revocation may point to the caller's memory; the
 * other members of *grant are cleared. Blocks until claim->deadline_ns.
 *
 * HF_OK           grant->ttl_ms counts from grant->sent_at_ns on; after a look the ttl is the one
 *                 on record, remaining_ms is what was left at sent_at_ns, and loss is
 *                 HF_LOSS_BROKEN if the hold was broken
 * HF_LOST         not held, or not with this token: grant->loss says why
 * HF_UNKNOWN, HF_UNREACHABLE, HF_QUARANTINE   no answer
 * HF_INVALID, HF_UNSUPPORTED, HF_DENIED, HF_CORRUPT, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_relay_renew(struct hf_store *store,
                                                   const struct hf_claim *claim,
                                                   struct hf_grant *grant, struct hf_error *err);

/* hf_relay_release - end the hold of claim->owner with claim->token; with token 0 whatever it is.
 *
 * Must not be called while an acquire with this owner is under way: it might overtake it. Blocks
 * until claim->deadline_ns.
 *
 * HF_OK           it was held, and is free
 * HF_LOST         it was not held by this owner, or not with this token
 * HF_UNKNOWN, HF_UNREACHABLE   no answer: the lock is free when its ttl ends at the latest
 * HF_INVALID, HF_UNSUPPORTED, HF_DENIED, HF_CORRUPT, HF_NOMEM */
HF_API HF_MUST_CHECK enum hf_status hf_relay_release(struct hf_store *store,
                                                     const struct hf_claim *claim,
                                                     struct hf_error *err);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_RELAY_H */
