/* row.h - what the server's answers say. Pure: nothing here asks or waits, and nothing that a
 * server may send breaks it. Each pg_row_ function returns false for an answer that makes no sense.
 * */
#ifndef HF_STORES_POSTGRES_ROW_H
#define HF_STORES_POSTGRES_ROW_H

#include <holdfast/record.h>
#include <postgresql/libpq-fe.h>

enum {
    PG_ID_SIZE = 40,   /* an incarnation: system identifier, '/', timeline, NUL */
    PG_WHY_SIZE = 160, /* what went wrong, in one line */
    PG_STATE_SIZE = 6  /* an SQLSTATE and its NUL */
};

/* The first row's first column says that the server is a standby. */
bool pg_row_standby(const PGresult *rows);

/* holdfast.acquire, holdfast.acquire_any */
#define PG_ACQUIRE_COLUMNS     "verdict, token, look_ms, left_ms, holder, label"
#define PG_ACQUIRE_ANY_COLUMNS PG_ACQUIRE_COLUMNS ", which, more, settled"
enum { PG_ACQUIRE_COUNT = 6, PG_ACQUIRE_ANY_COUNT = 9 };

enum pg_acquire_verdict { PG_GRANTED, PG_BUSY, PG_TWICE, PG_NEW };

struct pg_acquired {
    enum pg_acquire_verdict verdict;
    uint64_t token;               /* granted: ours; busy: the holder's */
    int64_t retry_ms;             /* busy: when to ask again, at least 1 */
    int64_t left_ms;              /* busy: of the holder's time */
    bool held;                    /* busy: false, it is being handed over */
    char label[HF_LABEL_MAX + 1]; /* busy: the holder's, printable */
    size_t which;                 /* of several: which one it is about, from 0 */
    bool more;                    /* granted, of several: another was handed to us as well */
    bool settled;                 /* busy, of several: whoever releases one sees that we wait */
};
/* count: of how many locks it is one. */
bool pg_row_acquired(const PGresult *rows, size_t count, struct pg_acquired *out);

/* holdfast.renew */
#define PG_RENEW_COLUMNS "verdict, left_ms, ttl_ms"
enum { PG_RENEW_COUNT = 3 };

struct pg_kept {
    enum hf_loss loss; /* HF_LOSS_NONE: held */
    bool revoked;      /* after a look: held, and broken */
    int64_t left_ms;   /* likewise; else 0 */
    uint32_t ttl_ms;   /* likewise */
};
bool pg_row_kept(const PGresult *rows, struct pg_kept *out);

/* holdfast.renew_many, one row each. *locked: somebody else has the row, and nothing was done. */
bool pg_row_kept_many(const PGresult *rows, int row, enum hf_loss *loss, bool *locked);

/* holdfast.release: HF_LOSS_NONE if it was held. */
bool pg_row_released(const PGresult *rows, enum hf_loss *out);

/* holdfast.revoke */
#define PG_REVOKE_COLUMNS "verdict, left_ms, again, detached, label"
enum { PG_REVOKE_COUNT = 5 };

enum pg_revoke_verdict { PG_REVOKED, PG_NOT_HELD, PG_HANDED, PG_OTHER_TOKEN };
/* revoked: *out is filled in. */
bool pg_row_revoked(const PGresult *rows, enum pg_revoke_verdict *verdict, struct hf_broken *out);

/* holdfast.who_broke. What it does not tell stays empty. */
#define PG_WHO_COLUMNS "verdict, at_ms, label, reason"
enum { PG_WHO_COUNT = 4 };
bool pg_row_revocation(const PGresult *rows, struct hf_revocation *out);

/* holdfast.meet, holdfast.quarantine */
#define PG_MEET_COLUMNS "verdict, version, id, left_ms, agreed_ms, why"
enum { PG_MEET_COUNT = 6 };

enum pg_meet_verdict { PG_OPEN, PG_QUARANTINE, PG_MAX_TTL };
enum pg_why { PG_WHY_PROMOTED, PG_WHY_MOVED, PG_WHY_UNMET };

struct pg_met {
    enum pg_meet_verdict verdict;
    int64_t version;     /* of the schema */
    char id[PG_ID_SIZE]; /* open, quarantine: the incarnation */
    int64_t left_ms;     /* quarantine: how long it lasts, at least 1 */
    int64_t agreed_ms;   /* max_ttl: what the others agreed on */
    enum pg_why why;     /* quarantine */
};
bool pg_row_met(const PGresult *rows, struct pg_met *out);

/* holdfast.end_quarantine */
#define PG_OPENED_COLUMNS "verdict, left_ms"
enum { PG_OPENED_COUNT = 2 };

enum pg_open_verdict { PG_WAS_OPENED, PG_WAS_OPEN, PG_WAS_ANOTHER };

struct pg_opened {
    enum pg_open_verdict verdict;
    int64_t left_ms; /* opened: what was left of the quarantine */
};
bool pg_row_opened(const PGresult *rows, struct pg_opened *out);

/* holdfast.record_put. *stale: there is a newer one. *loss: HF_LOSS_NONE if the lock is held. */
bool pg_row_written(const PGresult *rows, bool *stale, enum hf_loss *loss);

/* holdfast.record_get, holdfast.record_list */
#define PG_RECORD_COLUMNS "verdict, now_ms, key, token, number, written_ms, until_ms, value"
enum { PG_RECORD_COUNT = 8 };

enum pg_record_verdict {
    PG_RECORD_READ,
    PG_RECORD_NONE,    /* there is none */
    PG_RECORD_DAMAGED, /* its key is known, and nothing else */
    PG_RECORD_NONSENSE
};

struct pg_record {
    struct
        hf_record public; /* points to what follows; its value_len is right if it is damaged, too */
    char key[HF_RECORD_KEY_MAX + 1];
    char value[HF_RECORD_VALUE_MAX + 1];
};
enum pg_record_verdict pg_row_record(const PGresult *rows, int row, struct pg_record *out);
/* The server's clock in ms, from the first row; -1 if it does not tell. */
int64_t pg_row_record_clock(const PGresult *rows);

/* holdfast.list */
#define PG_LIST_COLUMNS_7  "name, held, token, left_ms, age_ms, waiters, detached, label, n"
#define PG_LIST_COLUMNS_23 PG_LIST_COLUMNS_7 ", broken_ms, broken_by, reason"
#define PG_LIST_COLUMNS    PG_LIST_COLUMNS_23 ", ttl_ms"
enum { PG_LIST_COUNT = 13 };

/* A row of it, and what its texts point to. */
struct pg_lock {
    struct hf_lock_info info;
    char name[HF_NAME_MAX + 1];
    char label[HF_LABEL_MAX + 1];
    struct hf_revocation revocation;
};

/* How many rows the server looked at for this page. */
int64_t pg_row_scanned(const PGresult *rows);
/* Neither held nor waited for: only where the page ended. */
bool pg_row_lock(const PGresult *rows, int row, struct pg_lock *out);

/* holdfast.waiters: a row of "label, waited_ms". */
bool pg_row_waiter(const PGresult *rows, int row, char label[HF_LABEL_MAX + 1], int64_t *waited_ms);

/* The number in the first row, or otherwise. */
int64_t pg_row_number(const PGresult *rows, int column, int64_t otherwise);

/* Copies the first line of text, printable. */
void pg_one_line(char out[PG_WHY_SIZE], const char *text);
/* What libpq says of a failed connect, which has no result to ask for its SQLSTATE: it is in the
 * text, if that is verbose. state is "" if there is none. */
void pg_connect_error(const char *text, char state[PG_STATE_SIZE], char why[PG_WHY_SIZE]);

#endif /* HF_STORES_POSTGRES_ROW_H */
