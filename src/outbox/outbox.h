/* outbox.h - messages that are written in the user's own transactions: the migration that makes
 * their table, and the statements by which the relay reads and settles them, in each dialect. */
#ifndef HF_OUTBOX_OUTBOX_H
#define HF_OUTBOX_OUTBOX_H

#include "base/migration.h"

#include <stdio.h>

/* The migration: sql.c */

struct hf__outbox_sql {
    enum hf__dialect dialect;
    const char *schema; /* PostgreSQL; NULL: holdfast_outbox, which --down removes as well */
    bool down;          /* the reverse */
};

/* hf__outbox_sql - the migration. *out is the caller's, to be freed with free(). HF_OK; HF_INVALID:
 * a schema whose name cannot be, or where there are none; HF_NOMEM. */
enum hf_status hf__outbox_sql(const struct hf__outbox_sql *what, char **out, struct hf_error *err);

/* The statements: statements.c. Each is written to a stream, as one statement without a semicolon.
 * Numbers and names of ours stand in it as they are, whatever else is written in hex: there is
 * nothing to escape. All columns that are read are text, but for payload, which is bytes. */

struct hf__outbox_names {
    enum hf__dialect dialect;
    char message[HF__SQL_QUOTED_SIZE + 16]; /* the tables, as they stand in a statement */
    char fence[HF__SQL_QUOTED_SIZE + 16];
    char settled[HF__SQL_QUOTED_SIZE + 16];
};

/* HF_OK; HF_INVALID as hf__outbox_sql. */
enum hf_status hf__outbox_names(struct hf__outbox_names *out, enum hf__dialect dialect,
                                const char *schema, struct hf_error *err);

/* A text as a literal. It has to be UTF-8. */
void hf__outbox_put_text(FILE *out, enum hf__dialect dialect, const char *text);

/* What to send to a new connection, one after the other, up to NULL. */
const char *const *hf__outbox_session(enum hf__dialect dialect);
const char *hf__outbox_begin(enum hf__dialect dialect);

/* A fetch takes two statements: a database may copy what it sorts, and payloads may be large. What
 * is small comes with the first.
 *
 * The columns of the first. blocker: the lowest id of a message of that key which failed, and comes
 * before this one; NULL: there is none. Whether it is due is not asked here: time goes on while a
 * statement runs, and it may be due for one row and not for the next. If it is, it is one of the
 * rows itself. bytes: of payload and headers, which follow if they have HF__OUTBOX_SMALL at most;
 * else they are NULL. */
enum {
    HF__OUTBOX_ID,
    HF__OUTBOX_UID,
    HF__OUTBOX_TOPIC,
    HF__OUTBOX_KEY,
    HF__OUTBOX_CREATED,
    HF__OUTBOX_ATTEMPTS,
    HF__OUTBOX_BLOCKER,
    HF__OUTBOX_BYTES,
    HF__OUTBOX_SMALL_PAYLOAD,
    HF__OUTBOX_SMALL_HEADERS,
    HF__OUTBOX_COLUMNS
};
enum { HF__OUTBOX_SMALL = 2048 };
/* At most count of those that are due and not parked, from the lowest id on. aside: a list of ids,
 * whose keys are left out; NULL: all are meant. */
void hf__outbox_put_fetch(FILE *out, const struct hf__outbox_names *names, uint64_t count,
                          const char *aside);

/* Of the second: id, payload, headers. In the order of ids, a list "1,2,3". */
enum { HF__OUTBOX_PAYLOAD = 1, HF__OUTBOX_HEADERS, HF__OUTBOX_BODY_COLUMNS };
void hf__outbox_put_bodies(FILE *out, const struct hf__outbox_names *names, const char *ids);

/* Enters the fence: reads nothing and changes one row, or none if it is refused. */
struct hf__outbox_pass {
    const char *name; /* of the relay */
    uint64_t token;
    const char *issuer; /* the store that issued it; "": not known */
};
void hf__outbox_put_enter(FILE *out, const struct hf__outbox_names *names,
                          const struct hf__outbox_pass *pass);
/* All of a settlement in which nothing failed, in one statement, where a database can: enters
 * the fence and deletes those that were delivered and have no mark. Parameters are the ids and the
 * uids, in the same order, with commas between them; as many rows are changed, or none if it is
 * refused. False: there is no such statement here, and nothing was written. */
bool hf__outbox_put_settle(FILE *out, const struct hf__outbox_names *names,
                           const struct hf__outbox_pass *pass);
/* What the fence says: name, token, issuer. */
void hf__outbox_put_mark(FILE *out, const struct hf__outbox_names *names);

/* ids is a list "1,2,3", not empty. */
void hf__outbox_put_delete(FILE *out, const struct hf__outbox_names *names, const char *ids);
/* Behind it: only those that have one of these uids, a list too. After a restore, or when a replica
 * that was behind took over, an id may be another message's. */
void hf__outbox_put_uid(FILE *out, enum hf__dialect dialect, const char *uid); /* in such a list */
void hf__outbox_put_only(FILE *out, const struct hf__outbox_names *names, const char *uids);
/* Behind it: only those that did not fail, behind which nothing is parked. */
void hf__outbox_put_unmarked(FILE *out);
/* Those of these that failed, as the database knows it: something may be parked behind them.
 * hf__outbox_put_only may follow. */
void hf__outbox_put_failed(FILE *out, const struct hf__outbox_names *names, const char *ids);
/* Frees what is parked on the keys of these. Comes before they are deleted, in the same
 * transaction. */
void hf__outbox_put_free(FILE *out, const struct hf__outbox_names *names, const char *ids);
/* Frees what is parked although nothing is left that it would wait for. */
void hf__outbox_put_free_orphans(FILE *out, const struct hf__outbox_names *names);

/* A message that failed. */
struct hf__outbox_failure {
    const char *id;
    const char *uid;
    unsigned attempts;
    int64_t delay_ms; /* from now on; < 0: it is dead */
    const char *error;
};
void hf__outbox_put_failure(FILE *out, const struct hf__outbox_names *names,
                            const struct hf__outbox_failure *failure);
/* Which of these messages block a key now, and which key: id, key. They are locked: whoever removes
 * one comes later, and sees what was parked behind it. */
void hf__outbox_put_blockers(FILE *out, const struct hf__outbox_names *names, const char *ids);
/* Parks messages; hf__outbox_put_only may follow, as behind a deletion. */
void hf__outbox_put_park(FILE *out, const struct hf__outbox_names *names, const char *ids);

/* For people. The columns of a list: uid, topic, key, state, attempts, created, next, error,
 * behind. */
enum { HF__OUTBOX_LIST_COLUMNS = 9 };
void hf__outbox_put_list(FILE *out, const struct hf__outbox_names *names);
/* What is there in all: messages, seconds since the oldest was written ("" if there is none), dead,
 * parked. */
void hf__outbox_put_depth(FILE *out, const struct hf__outbox_names *names);
/* The id of uid, which is 1 to 36 of 0-9, a-f and '-', if it has failed; locked. */
void hf__outbox_put_find(FILE *out, const struct hf__outbox_names *names, const char *uid);
/* Notes what was decided about the message with that id. */
void hf__outbox_put_settled(FILE *out, const struct hf__outbox_names *names, const char *id,
                            const char *decision, const char *reason);
/* Makes it due, as after one failure. */
void hf__outbox_put_retry(FILE *out, const struct hf__outbox_names *names, const char *id);

#endif /* HF_OUTBOX_OUTBOX_H */
