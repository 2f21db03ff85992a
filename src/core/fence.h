/* fence.h - the pure parts of the fence that are not public. */
#ifndef HF_CORE_FENCE_H
#define HF_CORE_FENCE_H

#include <holdfast/fence.h>

/* The issuer as a mark holds it: cut and hashed if it is too long, "" for NULL. */
void hf__fence_issuer(char out[HF_FENCE_ISSUER_MAX + 1], const char *issuer);

/* The issuer that the rule is to judge by, in out: the pass's, as a mark holds it. Where the mark names
 * a URL and the pass knows the store by its identity and by that same URL, the mark forgets the URL, so
 * that the rule puts the identity there; where the pass knows only a URL, it counts for such marks. */
void hf__fence_settle(struct hf_fence_mark *mark, const char *issuer, const char *url,
                      char out[HF_FENCE_ISSUER_MAX + 1]);

#endif /* HF_CORE_FENCE_H */
