/* inspect.h - what those who look share. */
#ifndef HF_SERVE_INSPECT_H
#define HF_SERVE_INSPECT_H

#include "serve/serve.h"

/* NULL: no memory. */
struct readiness *readiness_open(void);
void readiness_close(struct readiness *readiness);

#endif /* HF_SERVE_INSPECT_H */
