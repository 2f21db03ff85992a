/* fence.h - the pure parts of the fence that are not public. */
#ifndef HF_CORE_FENCE_H
#define HF_CORE_FENCE_H

#include <holdfast/fence.h>

/* The issuer as a mark holds it: cut and hashed if it is too long, "" for NULL. */
void hf__fence_issuer(char out[HF_FENCE_ISSUER_MAX + 1], const char *issuer);

#endif /* HF_CORE_FENCE_H */
