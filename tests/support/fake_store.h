/* fake_store.h - a store in memory that answers what a test tells it to, and remembers the calls.
 *
 * Without a script it agrees to everything: tokens 1, 2, 3, ... and every renewal. It grants a lock
 * as often as it is asked to: what the client makes of the answers is what is tested. */
#ifndef HF_TESTS_FAKE_STORE_H
#define HF_TESTS_FAKE_STORE_H

#include <holdfast/store.h>

enum fake_op { FAKE_ACQUIRE, FAKE_RENEW, FAKE_RELEASE, FAKE_LIST, FAKE_CLOSE, FAKE_OPS };

struct fake_answer {
    enum hf_status status;
    enum hf_loss loss;
    uint64_t token;         /* acquire: 0 takes the next one */
    bool no_token;          /* acquire: answer with token 0 */
    int64_t sent_ms_ago;    /* how long before now the request is said to have left */
    uint32_t ttl_ms;        /* what is said to be granted; 0: as asked */
    int64_t remaining_ms;   /* renew that only looks */
    int64_t delay_ms;       /* how long the call takes */
    bool until_deadline;    /* the call takes until the claim's deadline */
    int64_t retry_after_ms; /* with HF_QUARANTINE */
};

struct fake_call {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_LEN + 1];
    char label[HF_LABEL_MAX + 1];
    uint64_t token;
    uint32_t ttl_ms;
    bool detached;
    enum hf_kept kept;
    bool forked; /* close */
    int64_t deadline_ns;
    int64_t wait_until_ns;
    int cancel_fd;
    int64_t at_ns; /* when the call came */
};

struct fake_store;

/* Never NULL. Ends with fake_free, after hf_close: what was logged can be looked at until then. */
struct fake_store *fake_new(unsigned features);
void fake_free(struct fake_store *fake);
struct hf_store_base *fake_base(struct fake_store *fake);
/* Its table, for tests that change it before anybody uses the store. */
struct hf_store_ops *fake_ops(struct fake_store *fake);
/* A handle over the store; fails the test if there is none. */
struct hf_store *fake_open(struct fake_store *fake);

/* One answer, given once, after those that were scripted before; and one for all later calls. */
void fake_next(struct fake_store *fake, enum fake_op op, struct fake_answer answer);
void fake_always(struct fake_store *fake, enum fake_op op, struct fake_answer answer);

size_t fake_count(struct fake_store *fake, enum fake_op op);
/* The index-th call of a kind, from 0; fails the test if there was none. */
struct fake_call fake_call(struct fake_store *fake, enum fake_op op, size_t index);

#endif /* HF_TESTS_FAKE_STORE_H */
