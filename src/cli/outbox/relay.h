/* relay.h - how the parts of `holdfast outbox relay` fit together.
 *
 *     cmd_relay.c         options; takes the lock, opens the database, gives both back
 *     relay.c             the loop: fetch, deliver, settle
 *     batch.c             the messages that were fetched, and where each of them is
 *     settle.c            what is written to the database, behind the fence
 *     figures.c           what --events and --metrics are told
 *     deliver_command.c   delivery to a command: line.c writes a message, child.c has the process
 *     src/senders         delivery over HTTP, a plugin
 *
 * Fetch, delivery and settling are three steps. No transaction is open during a delivery. What was
 * answered is kept here until the database has it. src/core/outbox.c decides; src/outbox has the
 * statements.
 */
#ifndef HF_CLI_OUTBOX_RELAY_H
#define HF_CLI_OUTBOX_RELAY_H

#include "base/backoff.h"
#include "cli/events/events.h"
#include "cli/outbox/outbox.h"
#include "cli/take/take.h"
#include "senders/sender.h"

enum {
    OUTBOX_PARALLEL_MAX = 256,
    OUTBOX_BATCH_MAX = 10000,
    OUTBOX_FIGURES_MS = 10000,            /* how often figures are told */
    OUTBOX_FETCH_BYTES = 32 * 1024 * 1024 /* payloads of one fetch; one message may have more */
};

struct outbox_relay_options {
    struct take_options take;
    struct events_options events;
    const char *name;
    const char *schema;
    char http[CLI_URL_SIZE]; /* "": CMD instead */
    char **command;
    uint64_t parallel;
    uint64_t batch;
    uint64_t attempts;
    int64_t poll_ms;
    int64_t timeout_ms;
};

/* The messages that were fetched: batch.c */

struct outbox_message {
    struct hf__sender_message sent; /* its texts are in block, payload and headers in body */
    char *block;
    char *body;        /* NULL: it has none yet */
    unsigned delivery; /* by which it is under way */
    int64_t asked_ms;  /* with FAILED: how long the receiver wants us to wait; < 0 */
    bool parked;       /* in this settlement */
    char why[HF__SENDER_WHY_SIZE];
};

struct outbox_batch {
    struct hf__outbox_item *items;   /* as src/core/outbox.h sees them ... */
    struct outbox_message *messages; /* ... and what they are; the same places */
    size_t count;
    size_t carried; /* how many, from the first on, were here before the last fetch */
    size_t capacity;
    size_t first;   /* those before it were answered */
    size_t body;    /* those before it have their body */
    size_t rows;    /* that the last fetch brought */
    uint64_t bytes; /* of those that were fetched */
    bool full;      /* no more are taken */
    size_t under_way;
    size_t answered; /* delivered or failed, and not settled */
    size_t blocked;  /* to be parked, and not settled */
    int *table;
    size_t table_size;
};

bool outbox_batch_init(struct outbox_batch *batch, size_t capacity);
void outbox_batch_release(struct outbox_batch *batch);
/* Add a row of the first, and of the second, statement of a fetch: outbox_row_fn. */
bool outbox_batch_add(const struct hf__db_text *values, void *data);
bool outbox_batch_add_body(const struct hf__db_text *values, void *data);
/* After a whole fetch: who follows whom. One that has no body now is gone. */
void outbox_batch_link(struct outbox_batch *batch);
/* Forgets all but what is under way: what was answered is settled, and what waits is fetched again.
 */
void outbox_batch_shrink(struct outbox_batch *batch);
/* Before another fetch is added to what is here. */
void outbox_batch_again(struct outbox_batch *batch);

/* A list "1,2,3" of those that pick says; NULL: no memory, "": there are none. To be freed. */
typedef bool outbox_pick_fn(const struct outbox_batch *batch, size_t i);
char *outbox_batch_list(const struct outbox_batch *batch, outbox_pick_fn *pick);

/* What people are told of: sent, failed, dead. */
struct outbox_counts {
    uint64_t sent;
    uint64_t retried;
    uint64_t dead;
};

struct outbox_relay {
    const struct outbox_relay_options *options;
    struct cli_stderr *writer;
    struct hf_lease *lease;
    struct outbox_db db;
    struct hf__outbox_pass pass;
    const struct hf__sender_ops *sender_ops;
    struct hf__sender *sender;
    struct outbox_batch batch;
    bool *deliveries;            /* by number; true: under way */
    int signal_fd;               /* readable: stop */
    int lost_fd;                 /* readable: the lock is lost */
    struct hf__backoff backoff;  /* of the database */
    bool told;                   /* that the database is in trouble */
    struct outbox_counts counts; /* since they were told last */
    struct events *events;       /* NULL: nobody asked */
    int64_t figures_ns;          /* when they are told next */
};

/* Writing to the database: settle.c. All of it is one transaction, and enters the fence first.
 * HF_OK; HF_STALE: a later relay was there; HF_BUSY, HF_UNREACHABLE: to be tried again; and what
 * else outbox_db_do says. */

/* Raises the fence, and frees what is parked although nothing is left that it would wait for. */
enum hf_status outbox_settle_begin(struct outbox_relay *relay, struct hf_error *err);
/* Deletes what was delivered, marks what failed, parks what is behind it. */
enum hf_status outbox_settle(struct outbox_relay *relay, struct hf_error *err);
/* For a relay that has to end: deletes what was delivered, which anybody may. */
void outbox_settle_last(struct outbox_relay *relay);

/* The loop: relay.c. Until a signal comes (HF_CANCELLED), the lock is lost (HF_LOST, HF_STALE) or
 * the database says what does not pass. */
enum hf_status outbox_relay_loop(struct outbox_relay *relay, struct hf_error *err);

/* Tells how many messages there are, how old the oldest is, and what was done since: figures.c.
 * Does nothing before it is time, unless it is the last one. */
void outbox_tell_figures(struct outbox_relay *relay, bool last);

/* Delivery to a command: deliver_command.c. Its open executes it: HF_INVALID with errno in
 * *exec_errno. */
extern const struct hf__sender_ops outbox_command_ops;
/* The line for a message, with its line break: line.c. NULL: no memory; to be freed. */
void outbox_line(FILE *out, const struct hf__sender_message *message);

#endif /* HF_CLI_OUTBOX_RELAY_H */
