/* fault_store.h - a store around any store, whose calls fail when a test wants them to.
 *
 * A fault hits one kind of call, from the `from`-th on (counting from 1), `times` times. Before:
 * the inner store is never asked, as if the request was lost. After: it was asked and did what it
 * was told, and the answer is lost. */
#ifndef HF_TESTS_FAULT_STORE_H
#define HF_TESTS_FAULT_STORE_H

#include <holdfast/store.h>

enum fault_call {
    FAULT_ACQUIRE,
    FAULT_RENEW,
    FAULT_RELEASE,
    FAULT_LIST,
    FAULT_RECORD_PUT,
    FAULT_RECORD_GET,
    FAULT_CALLS
};

struct fault {
    enum fault_call call;
    unsigned from;
    unsigned times; /* UINT32_MAX: for ever */
    bool after;
    enum hf_status status; /* HF_UNKNOWN, HF_UNREACHABLE, ...; HF_OK: only the delay */
    int64_t delay_ms;      /* before the answer */
    bool until_deadline;   /* the answer fails at the claim's deadline, not sooner */
};

#define FAULT_MAX 16

struct fault_store;

/* Wraps inner, which ends with it. Never NULL. */
struct fault_store *fault_wrap(struct hf_store_base *inner);
struct hf_store_base *fault_base(struct fault_store *store);
/* Adds a fault; counts from the next call on. */
void fault_add(struct fault_store *store, struct fault fault);
/* All is well again. */
void fault_clear(struct fault_store *store);
/* How many calls of a kind were made, and how many of them reached the inner store. */
unsigned fault_made(struct fault_store *store, enum fault_call call);
unsigned fault_reached(struct fault_store *store, enum fault_call call);

#endif /* HF_TESTS_FAULT_STORE_H */
