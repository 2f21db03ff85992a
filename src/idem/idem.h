/* idem.h - idempotency keys in the user's own database: the migration that makes them. */
#ifndef HF_IDEM_IDEM_H
#define HF_IDEM_IDEM_H

#include "base/migration.h"

struct hf__idem_sql {
    enum hf__dialect dialect;
    const char *schema; /* PostgreSQL; NULL: holdfast_idem, which --down removes as well */
    int64_t keep_ms;    /* what purge leaves alone unless told otherwise; 0: a day */
    bool down;          /* the reverse */
};

enum { HF__IDEM_KEEP_MS = 24 * 60 * 60 * 1000 };

/* hf__idem_sql - the migration. *out is the caller's, to be freed with free(). HF_OK; HF_INVALID: a
 * schema whose name cannot be, or where there are none; HF_NOMEM. */
enum hf_status hf__idem_sql(const struct hf__idem_sql *what, char **out, struct hf_error *err);

#endif /* HF_IDEM_IDEM_H */
