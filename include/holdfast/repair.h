/* holdfast/repair.h - a store that grants nothing: why, and what a person can do about it. */
#ifndef HOLDFAST_REPAIR_H
#define HOLDFAST_REPAIR_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hf_repair - make a damaged store usable again, or end a quarantine, when hf_open answered
 * HF_CORRUPT.
 *
 * Refuses while any process has the store open. Every lease in it ends. Tokens from now on are
 * above `above` (0: no more is known), above all that can still be read from the store, and not
 * below the wall clock: give the highest token that a fenced resource has admitted.
 * HF_OK: report->text says what was done. HF_INVALID: no such token, or no such store and above is
 * 0. HF_BUSY, HF_UNSUPPORTED, HF_DENIED. */
HF_API HF_MUST_CHECK enum hf_status hf_repair(const char *url, uint64_t above,
                                              struct hf_error *report);

/* hf_quarantine - whether the store grants at this moment. HF_OK, even if it knows no quarantine;
 * HF_QUARANTINE: err->retry_after_ms says for how long it does not, the text why. Changes nothing.
 * HF_UNREACHABLE, HF_UNKNOWN, HF_INVALID. */
HF_API HF_MUST_CHECK enum hf_status hf_quarantine(struct hf_store *store, struct hf_error *err);

/* hf_end_quarantine - open a store that is in quarantine, on the word of a person who knows that
 * nobody holds a lock that the store has forgotten.
 *
 * reason: why, 1 to HF_LABEL_MAX bytes, kept by the store together with who and when. It ends the
 * quarantine of the incarnation that is there now and of no other: if the server restarts
 * meanwhile, the new one has its own. HF_OK: report->text says what was ended. HF_INVALID: no
 * reason, or the store is open already. HF_UNSUPPORTED: this kind of store knows no quarantine.
 * HF_UNKNOWN, HF_UNREACHABLE, HF_DENIED. */
HF_API HF_MUST_CHECK enum hf_status hf_end_quarantine(struct hf_store *store, const char *reason,
                                                      struct hf_error *report);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_REPAIR_H */
