/* bench_outbox_pg.c CONNINFO URL HOLDFAST - what an outbox costs in PostgreSQL: a message in a
 * transaction, a fetch behind parked messages, and the relay beside a DELETE of the same rows.
 *
 * outbox.sh made the tables, and two outboxes: holdfast_outbox, and the schema parked. Called as
 * "bench_outbox_pg say-ok" it is the command that the relay runs. */
#include "compare.h"
#include "outbox/outbox.h"

#include <libpq-fe.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 40,
    BATCH = 5,
    FETCH_COUNT = 500,
    PARKED = 100000,
    POISON = 10,
    MESSAGES = 60000,
    RELAYS = 5 /* rounds of a DELETE, a relay and the other DELETE; the medians of ratios count */
};

struct bench {
    PGconn *conn;
    PGconn *tuned;  /* a session with the relay's settings: no scan of a whole table */
    char *fetch[2]; /* without parked messages, and with */
};

static void run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(result);
}

/* ---- a message in a transaction ---- */

static void change(void *data)
{
    struct bench *b = data;

    run(b->conn, "BEGIN");
    run(b->conn, "UPDATE thing SET n = n + 1 WHERE k = 1");
    run(b->conn, "COMMIT");
}

#define TELL                                                                                       \
    "INSERT INTO holdfast_outbox.message (topic, key, payload) "                                   \
    "VALUES ('things', 'thing-1', 'a payload of some forty bytes, or so')"

/* The message goes out together with the COMMIT: nothing is asked between the two. */
static void change_and_tell(void *data)
{
    struct bench *b = data;

    run(b->conn, "BEGIN");
    run(b->conn, "UPDATE thing SET n = n + 1 WHERE k = 1");
    run(b->conn, TELL "; COMMIT");
}

static void change_and_tell_apart(void *data)
{
    struct bench *b = data;

    run(b->conn, "BEGIN");
    run(b->conn, "UPDATE thing SET n = n + 1 WHERE k = 1");
    run(b->conn, TELL);
    run(b->conn, "COMMIT");
}

/* The floor where the message is a round trip of its own. */
static void change_and_ask(void *data)
{
    struct bench *b = data;

    run(b->conn, "BEGIN");
    run(b->conn, "UPDATE thing SET n = n + 1 WHERE k = 1");
    run(b->conn, "SELECT 1");
    run(b->conn, "COMMIT");
}

static void measure_message(struct bench *b)
{
    struct compared result =
        compare(&(struct comparison){change, change_and_tell, b, ROUNDS, BATCH});

    fact("PostgreSQL UPDATE, synced", result.plain_us, "us");
    fact("PostgreSQL UPDATE + message, synced", result.ours_us, "us");
    at_most("PostgreSQL UPDATE + message / UPDATE, synced", result.ratio, 1.25, "x");
    result = compare(&(struct comparison){change, change_and_tell_apart, b, ROUNDS, BATCH});
    fact("PostgreSQL UPDATE + message, a round trip of its own / UPDATE", result.ratio, "x");
    result = compare(&(struct comparison){change, change_and_ask, b, ROUNDS, BATCH});
    fact("PostgreSQL UPDATE + SELECT 1 / UPDATE", result.ratio, "x");
    run(b->conn, "TRUNCATE holdfast_outbox.message");
}

/* ---- a fetch ---- */

static char *fetch_of(const char *schema)
{
    struct hf__outbox_names names;
    struct hf_error err;
    char *sql = NULL;
    size_t len;
    FILE *out = open_memstream(&sql, &len);

    if (out == NULL || hf__outbox_names(&names, HF__POSTGRES, schema, &err) != HF_OK)
        exit(1);
    hf__outbox_put_fetch(out, &names, FETCH_COUNT, NULL);
    (void)fclose(out);
    return sql;
}

static void fetch(void *data)
{
    struct bench *b = data;

    run(b->tuned, b->fetch[0]);
}

static void fetch_behind_parked(void *data)
{
    struct bench *b = data;

    run(b->tuned, b->fetch[1]);
}

static void fill(PGconn *conn, const char *schema, int count)
{
    char sql[400];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.message (topic, key, payload) SELECT 't', 'key' || i %% 100, "
                   "'a payload of some forty bytes, or so' FROM generate_series(1, %d) AS i",
                   schema, count);
    run(conn, sql);
}

static void measure_fetch(struct bench *b)
{
    char sql[400];
    struct compared result;

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO parked.message (topic, key, payload, attempts, not_before) "
                   "SELECT 't', 'poison' || i %% %d, 'p', CASE WHEN i <= %d THEN 1 ELSE 0 END, "
                   "CASE WHEN i <= %d THEN now() + interval '1 hour' ELSE 'infinity' END "
                   "FROM generate_series(1, %d) AS i",
                   POISON, POISON, POISON, PARKED);
    run(b->conn, sql);
    fill(b->conn, "parked", FETCH_COUNT);
    fill(b->conn, "holdfast_outbox", FETCH_COUNT);
    result = compare(&(struct comparison){fetch, fetch_behind_parked, b, ROUNDS, BATCH});
    fact("PostgreSQL fetch of 500 messages", result.plain_us, "us");
    fact("PostgreSQL fetch of 500, 100,000 parked", result.ours_us, "us");
    at_most("PostgreSQL fetch, 100,000 parked / none", result.ratio, 1.5, "x");
    run(b->conn, "TRUNCATE holdfast_outbox.message");
}

/* ---- the relay ---- */

/* Looks from the end: the last one is there until all are gone, and no deleted rows are in the way.
 */
static bool is_empty(PGconn *conn)
{
    PGresult *result =
        PQexec(conn, "SELECT 1 FROM holdfast_outbox.message ORDER BY id DESC LIMIT 1");
    bool empty = PQntuples(result) == 0;

    PQclear(result);
    return empty;
}

static void fill_again(PGconn *conn)
{
    run(conn, "TRUNCATE holdfast_outbox.message");
    fill(conn, "holdfast_outbox", MESSAGES);
    run(conn, "VACUUM ANALYZE holdfast_outbox.message");
}

static void prepare_delete(PGconn *conn)
{
    PQclear(PQprepare(conn, "delete",
                      "DELETE FROM holdfast_outbox.message WHERE id IN (SELECT id FROM "
                      "holdfast_outbox.message ORDER BY id LIMIT 500) RETURNING *",
                      0, NULL));
}

static double delete_all(PGconn *conn)
{
    double start;

    fill_again(conn);
    start = now_us();
    for (int i = 0; i < MESSAGES / FETCH_COUNT; i++)
        PQclear(PQexecPrepared(conn, "delete", 0, NULL, NULL, NULL, 0));
    start = now_us() - start;
    if (!is_empty(conn)) {
        fprintf(stderr, "bench: postgres: %s", PQerrorMessage(conn));
        exit(1);
    }
    return start;
}

/* Counted from the start of the relay. */
static double relay_all(PGconn *conn, const char *url, const char *holdfast, const char *self)
{
    double start, took;
    pid_t pid;

    fill_again(conn);
    start = now_us();
    pid = fork();
    if (pid == 0) {
        execl(holdfast, holdfast, "outbox", "relay", "--db", url, "--", self, "say-ok", NULL);
        _exit(127);
    }
    while (!is_empty(conn) && waitpid(pid, NULL, WNOHANG) == 0)
        usleep(2000);
    took = now_us() - start;
    if (!is_empty(conn)) {
        fprintf(stderr, "bench: the relay ended\n");
        exit(1);
    }
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
    return took;
}

/* The DELETE as anybody would write it, prepared, in a session as PostgreSQL has them; and in one
 * with the relay's settings. */
static void measure_relay(struct bench *b, const char *url, const char *holdfast, const char *self)
{
    double took[3][RELAYS], ratios[2][RELAYS];

    prepare_delete(b->conn);
    prepare_delete(b->tuned);
    for (int i = 0; i < RELAYS; i++) {
        bool back = i % 2 == 1;

        took[0][i] = delete_all(back ? b->tuned : b->conn);
        took[1][i] = relay_all(b->conn, url, holdfast, self);
        took[2][i] = delete_all(back ? b->conn : b->tuned);
        ratios[0][i] = took[back ? 2 : 0][i] / took[1][i];
        ratios[1][i] = took[back ? 0 : 2][i] / took[1][i];
    }
    fact("PostgreSQL relay to a command, batch 500",
         MESSAGES * 1e6 / compare_median(took[1], RELAYS), "/s");
    at_least("PostgreSQL relay / DELETE", compare_median(ratios[0], RELAYS), 0.4, "x");
    fact("PostgreSQL relay / DELETE, lowest", ratios[0][0], "x");
    fact("PostgreSQL relay / DELETE, highest", ratios[0][RELAYS - 1], "x");
    fact("PostgreSQL relay / DELETE with the relay's planner settings",
         compare_median(ratios[1], RELAYS), "x");
}

/* Answers {"uid":"UID",... with ok UID: all the lines of one read by one write, as a command does
 * that wants to be quick. */
static size_t answer_lines(const char *in, size_t len, char *out, size_t *out_len)
{
    const char *at = in;
    const char *end;

    *out_len = 0;
    while ((end = memchr(at, '\n', len - (size_t)(at - in))) != NULL) {
        size_t uid_len = strcspn(at + 8, "\"");

        memcpy(out + *out_len, "ok ", 3);
        memcpy(out + *out_len + 3, at + 8, uid_len);
        out[*out_len + 3 + uid_len] = '\n';
        *out_len += uid_len + 4;
        at = end + 1;
    }
    return (size_t)(at - in);
}

static int say_ok(void)
{
    static char in[65536], out[sizeof in];
    size_t have = 0;
    ssize_t got;

    while ((got = read(STDIN_FILENO, in + have, sizeof in - have)) > 0) {
        size_t len = have + (size_t)got;
        size_t said;
        size_t used = answer_lines(in, len, out, &said);

        if (write(STDOUT_FILENO, out, said) != (ssize_t)said)
            return 1;
        have = len - used;
        memmove(in, in + used, have);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = {.conn = NULL};

    if (argc == 2 && strcmp(argv[1], "say-ok") == 0)
        return say_ok();
    if (argc != 4)
        return 64;
    b.conn = PQconnectdb(argv[1]);
    b.fetch[0] = fetch_of(NULL);
    b.fetch[1] = fetch_of("parked");
    b.tuned = PQconnectdb(argv[1]);
    for (const char *const *s = hf__outbox_session(HF__POSTGRES); *s != NULL; s++)
        run(b.tuned, *s);
    measure_message(&b);
    measure_relay(&b, argv[2], argv[3], argv[0]);
    measure_fetch(&b);
    PQfinish(b.conn);
    PQfinish(b.tuned);
    free(b.fetch[0]);
    free(b.fetch[1]);
    return 0;
}
