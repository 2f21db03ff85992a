/* fence_text.h - the mark of a fenced key, as stores without scripts keep it: in a value of its own,
 * which is read, judged here, and replaced in one step with the change of the key. Pure. */
#ifndef HF_CORE_FENCE_TEXT_H
#define HF_CORE_FENCE_TEXT_H

#include <holdfast/fence.h>

/* The text of a mark:
 *
 *   1 TOKEN ADMITTED_US ISSUER
 *
 * and below it, newest first, a line for each of the last resets:
 *
 *   AT_US TOKEN ISSUER -> TOKEN ISSUER: REASON */
enum {
    HF__FENCE_RESETS_MAX = 8,
    HF__FENCE_RESET_SIZE = 3 * 21 + 2 * HF_FENCE_ISSUER_MAX + HF_FENCE_REASON_MAX + 16,
    HF__FENCE_TEXT_SIZE =
        2 + 2 * 21 + HF_FENCE_ISSUER_MAX + 2 + HF__FENCE_RESETS_MAX * HF__FENCE_RESET_SIZE
};

/* Judges a request by the text of the mark beside its key; NULL: there is none.
 * HF_OK: admitted. out is the text that takes the place of the other, in one step with the change;
 * "": it stays. HF_FENCE_READ_KEY: *mark is what is there. HF_STALE, HF_INVALID: refused by *mark.
 * HF_CORRUPT: that is no mark. */
enum hf_status hf__fence_judge(const struct hf_fence_request *request, const char *text,
                               int64_t now_us, struct hf_fence_mark *mark,
                               char out[HF__FENCE_TEXT_SIZE]);

#endif /* HF_CORE_FENCE_TEXT_H */
