/* db.h - how a database looks to the relay of an outbox: a plugin db_NAME.so, loaded when its URL
 * is used.
 *
 * An internal table, of the same version as the program. A connection is used by one thread.
 * Statements come one at a time, without parameters; what they say is for the caller to know
 * (src/outbox). */
#ifndef HF_DBS_DB_H
#define HF_DBS_DB_H

#include "base/migration.h"

#define HF__DB_ABI    1
#define HF__DB_SYMBOL "hf__db_plugin"

enum { HF__DB_COLUMNS_MAX = 16, HF__DB_ANSWER_MS = 15000 /* how long a statement may take */ };

struct hf__db; /* a connection */

/* bytes has a NUL behind it, and lives for the call; NULL: it is null. */
struct hf__db_value {
    const char *bytes;
    size_t len;
};

/* False: there is no memory. */
typedef bool hf__db_row_fn(const struct hf__db_value *values, void *data);

struct hf__db_answer {
    hf__db_row_fn *row; /* for each row; NULL: rows are dropped */
    void *data;
    uint64_t changed; /* out: rows that were written, where there are no rows to be read */
};

struct hf__db_ops {
    unsigned abi; /* HF__DB_ABI */
    enum hf__dialect dialect;

    /* Connects, within a few seconds. cancel_fd: -1, or readable = give up. HF_OK; HF_INVALID: the
     * URL makes no sense; HF_DENIED; HF_UNREACHABLE; HF_CANCELLED; HF_NOMEM. */
    enum hf_status (*open)(const char *url, int cancel_fd, struct hf__db **out,
                           struct hf_error *err);
    /* Takes NULL. What was not committed is rolled back. */
    void (*close)(struct hf__db *db);
    /* Executes one statement, within HF__DB_ANSWER_MS. HF_OK. HF_BUSY: others were in the way; roll
     * back, and all of the transaction may be tried again. HF_UNREACHABLE: the connection is gone,
     * and may be opened anew; a COMMIT may have come through. HF_INVALID, HF_DENIED, HF_CORRUPT: it
     * would not help. */
    enum hf_status (*execute)(struct hf__db *db, const char *sql, struct hf__db_answer *answer,
                              struct hf_error *err);
};

/* The one symbol a plugin exports. */
HF_API const struct hf__db_ops *hf__db_plugin(void);

#endif /* HF_DBS_DB_H */
