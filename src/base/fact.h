/* fact.h - telling facts: how the parts of an audit hand out what they learned. */
#ifndef HF_BASE_FACT_H
#define HF_BASE_FACT_H

#include <holdfast/audit.h>

enum { HF__FACT_VALUE_MAX = 512 }; /* bytes of a value with its NUL; the rest is cut */

/* Who hears of it. Starts with fn and data set. */
struct hf__teller {
    hf_fact_fn *fn;
    void *data;
    const char *where; /* of what is told from now on; NULL: all of it */
    bool stopped;      /* fn has heard enough: nothing more is told */
};

/* Where a fact has its place. */
struct hf__topic {
    const char *key;
    const char *unit; /* NULL: none */
    const char *source;
};

/* One fact; what is not printable becomes '?'. */
void hf__tell(struct hf__teller *teller, struct hf__topic topic, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* One that could not be looked at, and why; "" or NULL: nobody said. */
void hf__tell_unknown(struct hf__teller *teller, struct hf__topic topic, const char *why);

#endif /* HF_BASE_FACT_H */
