/* metrics.h - what is counted, and GET /metrics. No function here blocks but metrics_handle, and
 * that never for the store. */
#ifndef HF_SERVE_METRICS_H
#define HF_SERVE_METRICS_H

#include "serve/serve.h"

/* NULL: no memory. The store is open by then. */
struct metrics *metrics_open(struct serve *serve);
/* From now on the store is not asked. True: no question is under way any more; false: one still was
 * at until_ns, and the store must not be closed. */
bool metrics_end(struct metrics *metrics, int64_t until_ns);
void metrics_close(struct metrics *metrics);

/* A request was answered with this HTTP code. */
void metrics_count(struct metrics *metrics, enum serve_op op, int code);
/* How long it took from when it had been read; not called for those that waited in a queue. */
void metrics_duration(struct metrics *metrics, enum serve_op op, int64_t ns);
/* A wait for a lock ended. */
void metrics_wait(struct metrics *metrics, enum hf_status status, int64_t ns);
/* The store was asked, and answered with this after ns; waits are left out. Any status but
 * HF_UNKNOWN and HF_UNREACHABLE is an answer. */
void metrics_store(struct metrics *metrics, enum serve_op op, enum hf_status status, int64_t ns);
/* The store said this: counts only for when it answered last. */
void metrics_heard(struct metrics *metrics, enum hf_status status);
/* Somebody was turned away. */
void metrics_limited(struct metrics *metrics, enum serve_limit limit);

/* holdfast_clients and holdfast_waiters are serve->clients and serve->waiters. */
serve_handler metrics_handle;

#endif /* HF_SERVE_METRICS_H */
