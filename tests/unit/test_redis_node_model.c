/* test_redis_node_model.c - the simulator's model of a node against real Redis: the same random
 * operations, every answer compared. run: once */
#include "../sim/node.c" /* the model itself, not a copy */

#include "../support/check.h"
#include "base/base.h"
#include "stores/redis/wire/conn.h"
#include "stores/redis/script.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPS = 3000, OWNERS = 3, TTL_MS = 60000 };

#define WINDOW_US 10000000LL

static struct {
    pid_t server;
    unsigned port;
    struct rd_conn *conn;
    struct rd_keys keys;
    char id[64];
    char dir[64];
    uint64_t random;
    int64_t clock_us; /* the server's, as it said last */
    struct sim_node model;
} t;

static uint64_t draw(uint64_t below)
{
    t.random = t.random * 6364136223846793005u + 1442695040888963407u;
    return (t.random >> 33) % below;
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static struct rd_reply *ask(struct rd_request *request)
{
    struct hf__patience patience = {.deadline_ns = hf__now_ns() + 10 * HF__NS_PER_S,
                                    .cancel_fd = -1};
    struct rd_reply *reply = NULL;

    assert_int_equal(rd_conn_send(t.conn, request, &patience), HF_OK);
    assert_int_equal(rd_conn_receive(t.conn, &patience, &reply), HF_OK);
    rd_request_release(request);
    return reply;
}

static struct rd_reply *command(const char *const *words)
{
    struct rd_request request = {0};

    rd_request_command(&request, words);
    return ask(&request);
}

static bool connected(void)
{
    struct hf__patience patience = {.deadline_ns = hf__now_ns() + HF__NS_PER_S, .cancel_fd = -1};
    struct hf__address address = {.host = "127.0.0.1", .port = t.port};
    char why[160];

    return t.conn != NULL ||
           rd_conn_open(&address, NULL, &patience, &t.conn, why, sizeof why) == HF_OK;
}

static int start_server(void **state)
{
    struct rd_reply *info;
    const char *why;
    const char *at;
    char port[16];

    (void)state;
    check_temp_dir(t.dir, sizeof t.dir);
    t.port = free_port();
    (void)snprintf(port, sizeof port, "%u", t.port);
    t.server = fork();
    if (t.server == 0) {
        (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir",
                     t.dir, "--save", "", "--logfile", "/dev/null", (char *)NULL);
        _exit(127);
    }
    check_soon(connected());
    for (size_t i = 0; i < RD_SCRIPT_COUNT; i++)
        rd_reply_free(command((const char *const[]){"SCRIPT", "LOAD", rd_scripts[i].text, NULL}));
    info = command((const char *const[]){"INFO", "replication", NULL});
    at = strstr(rd_reply_text(info), "master_replid:");
    assert_non_null(at);
    (void)snprintf(t.id, sizeof t.id, "%.54s", at);
    rd_reply_free(info);
    assert_true(rd_keys_make(&t.keys, "", "model", &why));
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    rd_conn_close(t.conn);
    (void)kill(t.server, SIGKILL);
    (void)waitpid(t.server, NULL, 0);
    check_remove_dir(t.dir);
    return 0;
}

static const char *owner_text(uint64_t owner)
{
    static char text[HF_OWNER_LEN + 1];

    (void)snprintf(text, sizeof text, "%032llx", (unsigned long long)owner);
    return text;
}

static enum sim_verdict verdict_of(const struct rd_reply *reply, enum sim_verdict no)
{
    if (reply->type == RD_REPLY_INTEGER || rd_reply_is(reply, "granted"))
        return SIM_YES;
    if (rd_reply_is(reply, "new"))
        return SIM_NEW;
    if (rd_reply_is(reply, "held") || rd_reply_is(reply, "lost") || rd_reply_is(reply, "refused"))
        return no;
    print_error("an answer of another kind: %s\n",
                reply->text != NULL ? reply->text : rd_reply_text(rd_reply_at(reply, 0)));
    return SIM_QUARANTINE;
}

static void try_grant(size_t row, uint64_t owner, bool known)
{
    static const int64_t apart_us[] = {-2 * WINDOW_US, -WINDOW_US / 2, 0,
                                       1000000,        WINDOW_US / 2,  2 * WINDOW_US};
    int64_t guess = t.clock_us + apart_us[draw(COUNT(apart_us))];
    struct rd_request request = {0};
    struct sim_answer expected;
    struct rd_reply *reply;
    char record[128];

    (void)snprintf(record, sizeof record, "%lld %d - %s a label", (long long)guess, TTL_MS,
                   owner_text(owner));
    rd_script_begin(&request, RD_SCRIPT_REDLOCK_GRANT, &t.keys, 6);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, TTL_MS);
    rd_request_word(&request, known ? t.id : "master_replid:of another life");
    rd_request_number(&request, guess);
    rd_request_number(&request, WINDOW_US);
    rd_request_word(&request, record);
    reply = ask(&request);
    if (rd_reply_is(reply, "granted"))
        t.clock_us = rd_reply_number(rd_reply_at(reply, 3), 0);
    expected = sim_node_grant(&t.model, &(struct sim_rules){0},
                              &(struct sim_grant){.incarnation = known ? 1 : 2,
                                                  .owner = owner,
                                                  .ttl_ms = TTL_MS,
                                                  .guess = (uint64_t)guess,
                                                  .window_us = WINDOW_US,
                                                  .wall_us = t.clock_us});
    check_row(verdict_of(reply, SIM_HELD) == expected.verdict, row);
    if (expected.verdict == SIM_YES) {
        check_row(rd_reply_number(rd_reply_at(reply, 1), -1) == (int64_t)expected.prev, row);
        check_row((rd_reply_number(rd_reply_at(reply, 2), -1) == 1) == expected.applied, row);
        check_row(rd_reply_number(rd_reply_at(reply, 3), -1) == (int64_t)expected.clk, row);
    }
    rd_reply_free(reply);
}

static void try_raise(size_t row, uint64_t owner, bool known)
{
    uint64_t token = t.model.counter + draw(4) - (t.model.counter > 1 ? 1 : 0);
    struct rd_request request = {0};
    struct sim_answer expected;
    struct rd_reply *reply;

    rd_script_begin(&request, RD_SCRIPT_REDLOCK_RAISE, &t.keys, 3);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, (int64_t)token);
    rd_request_word(&request, known ? t.id : "master_replid:of another life");
    reply = ask(&request);
    expected =
        sim_node_raise(&t.model, &(struct sim_rules){0}, known ? 1 : 2, owner, token, t.clock_us);
    check_row(verdict_of(reply, SIM_REFUSED) == expected.verdict, row);
    rd_reply_free(reply);
}

/* The counter, one below, one above. */
static uint64_t a_token(void)
{
    return t.model.counter > 1 ? t.model.counter - 1 + draw(3) : 1;
}

static void try_renew(size_t row, uint64_t owner)
{
    struct rd_request request = {0};
    uint64_t token = a_token();
    struct sim_answer expected;
    struct rd_reply *reply;

    rd_script_begin(&request, RD_SCRIPT_REDLOCK_RENEW, &t.keys, 4);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, (int64_t)token);
    rd_request_number(&request, TTL_MS);
    rd_request_word(&request, draw(2) == 0 ? "0" : "1");
    reply = ask(&request);
    expected = sim_node_renew(&t.model, &(struct sim_rules){0}, owner, token, TTL_MS, t.clock_us);
    check_row(verdict_of(reply, SIM_HELD) == expected.verdict, row);
    if (expected.verdict == SIM_YES)
        check_row((rd_reply_number(reply, -1) == 1) == expected.exact, row);
    rd_reply_free(reply);
}

static void try_look(size_t row, uint64_t owner)
{
    struct rd_request request = {0};
    struct sim_node copy = t.model;
    uint64_t token = a_token();
    struct sim_answer expected;
    struct rd_reply *reply;

    rd_script_begin(&request, RD_SCRIPT_REDLOCK_LOOK, &t.keys, 2);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, (int64_t)token);
    reply = ask(&request);
    expected =
        sim_node_revoke(&copy, owner, token, t.clock_us); /* which finds what is broken, too */
    check_row(rd_reply_is(reply, "held") == (expected.verdict == SIM_YES), row);
    if (expected.verdict == SIM_YES)
        check_row((rd_reply_number(rd_reply_at(reply, 3), -1) == 1) == expected.exact, row);
    rd_reply_free(reply);
}

static void try_revoke(size_t row, uint64_t owner)
{
    struct rd_request request = {0};
    uint64_t token = a_token();
    struct sim_answer expected;
    struct rd_reply *reply;

    rd_script_begin(&request, RD_SCRIPT_REDLOCK_REVOKE, &t.keys, 5);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, (int64_t)token);
    rd_request_word(&request, "me");
    rd_request_word(&request, "a reason");
    rd_request_word(&request, "0");
    reply = ask(&request);
    expected = sim_node_revoke(&t.model, owner, token, t.clock_us);
    check_row(rd_reply_is(reply, "revoked") == (expected.verdict == SIM_YES), row);
    if (expected.verdict == SIM_YES)
        check_row((rd_reply_number(rd_reply_at(reply, 2), -1) == 1) == expected.exact, row);
    rd_reply_free(reply);
}

static void try_release(size_t row, uint64_t owner)
{
    struct rd_request request = {0};
    uint64_t token = draw(3) == 0 ? 0 : a_token();
    struct rd_reply *reply;

    rd_script_begin(&request, RD_SCRIPT_REDLOCK_RELEASE, &t.keys, 3);
    rd_request_word(&request, owner_text(owner));
    rd_request_number(&request, (int64_t)token);
    rd_request_word(&request, "");
    reply = ask(&request);
    check_row(verdict_of(reply, SIM_HELD) ==
                  sim_node_release(&t.model, owner, token, t.clock_us).verdict,
              row);
    rd_reply_free(reply);
}

/* The key's time is up; or all that the server knew is gone. */
static void lose(bool everything)
{
    rd_reply_free(everything ? command((const char *const[]){"FLUSHALL", NULL})
                             : command((const char *const[]){"PEXPIRE", t.keys.lock, "0", NULL}));
    t.model.owner = 0;
    if (everything)
        t.model.counter = 0;
}

static void answers_like_redis(void **state)
{
    (void)state;
    t.random = 42;
    t.model = (struct sim_node){.incarnation = 1};
    t.clock_us = hf__wall_us();
    for (size_t row = 0; row < OPS; row++) {
        uint64_t owner = 1 + draw(OWNERS);
        uint64_t op = draw(22);

        if (op < 7)
            try_grant(row, owner, true);
        else if (op < 11)
            try_raise(row, t.model.owner != 0 && draw(4) > 0 ? t.model.owner : owner, true);
        else if (op < 13)
            try_renew(row, owner);
        else if (op < 14)
            try_look(row, owner);
        else if (op < 17)
            try_release(row, owner);
        else if (op == 17)
            lose(draw(5) == 0);
        else if (op == 18)
            try_grant(row, owner, false);
        else if (op >= 20)
            try_revoke(row, t.model.owner != 0 && draw(2) > 0 ? t.model.owner : owner);
        else
            try_raise(row, owner, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_like_redis)};

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
