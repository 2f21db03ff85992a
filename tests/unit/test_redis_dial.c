/* test_redis_dial.c - what every TCP connection to a Redis server is told about peers that vanish.
 */
#include "../support/check.h"
#include "base/base.h"
#include "stores/redis/wire/conn.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener(struct hf__address *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *address = (struct hf__address){.host = "127.0.0.1", .port = ntohs(at.sin_port)};
    return fd;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* Sent data that is not acknowledged, and silence that nobody listens to, end the connection. */
static void a_peer_that_vanished_is_noticed(void **state)
{
    struct hf__patience patience = {.deadline_ns = hf__now_ns() + 10 * HF__NS_PER_S,
                                    .cancel_fd = -1};
    struct hf__address address;
    struct rd_conn *conn;
    char why[160];
    int fd = listener(&address);

    (void)state;
    assert_int_equal(rd_conn_open(&address, NULL, &patience, &conn, why, sizeof why), HF_OK);
    assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT), RD_UNHEARD_MS);
    assert_int_equal(option(conn->fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_true(option(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE) <= 60);
    rd_conn_close(conn);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_peer_that_vanished_is_noticed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
