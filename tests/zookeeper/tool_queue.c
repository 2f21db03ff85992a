/* tool_queue.c - what the ZooKeeper store decides without a server. Speaks TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<zookeeper/zookeeper.h>)
#include "stores/zookeeper/queue.c"
#include "stores/zookeeper/margin.c"
#include "stores/zookeeper/last_release.c"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-lock-"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-lock-"

static int tests;
static int failed;

static void ok(bool good, const char *what)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++tests, what);
    failed += !good;
}

static bool reads(const char *name, int32_t wanted)
{
    int32_t got;

    return zk_sequence(name, &got) && got == wanted;
}

static void check_sequence(void)
{
    int32_t ignored;

    ok(reads(A "0000000007", 7), "a number");
    ok(reads(A "2147483647", INT32_MAX), "the largest");
    ok(reads(A "-2147483648", INT32_MIN), "the one after it");
    ok(reads(A "-1000000000", -1000000000), "one of eleven characters");
    ok(reads(A "-999999999", -999999999), "the first of ten again");
    ok(reads(A "-000000001", -1), "the last before 0");
    ok(!zk_sequence("lock-000000001", &ignored), "too short for one that has no sign");
    ok(reads("uuid__lock__0000000042", 42), "another recipe's");
    ok(!zk_sequence(A "2147483648", &ignored), "too large for a number");
    ok(!zk_sequence(A "00000000x1", &ignored), "no number");
    ok(!zk_sequence("1", &ignored) && !zk_sequence("", &ignored), "too short");
}

static void check_order(void)
{
    char *names[] = {B "0000000010", A "0000000009", "no-contender", "x__lock__0000000011"};
    char *wrapped[] = {A "2147483647", B "-2147483648"};
    struct zk_queue queue;

    ok(zk_queue_init(&queue, &(struct zk_names){names, 4}) && queue.count == 3 && !queue.unsure,
       "contenders are taken, others left");
    ok(strcmp(queue.at[0].name, names[1]) == 0 && strcmp(queue.at[1].name, names[0]) == 0,
       "by number, not by name");
    ok(queue.at[2].foreign && !queue.at[0].foreign, "another recipe's is foreign");
    ok(zk_queue_find(&queue, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb") == 1, "an owner is found");
    ok(zk_queue_find(&queue, "cccccccccccccccccccccccccccccccc") == 3, "or not");
    zk_queue_release(&queue);
    ok(zk_queue_init(&queue, &(struct zk_names){wrapped, 2}) && queue.unsure,
       "numbers that wrapped around are not relied on");
    for (size_t i = 0; i < 2; i++)
        queue.at[i].czxid = strcmp(queue.at[i].name, wrapped[0]) == 0 ? 5 : 6;
    zk_queue_sort_czxid(&queue);
    ok(queue.count == 2 && strcmp(queue.at[0].name, wrapped[0]) == 0, "but the czxid is");
    queue.at[0].czxid = 0;
    zk_queue_sort_czxid(&queue);
    ok(queue.count == 1 && strcmp(queue.at[0].name, wrapped[1]) == 0, "what has none is gone");
    zk_queue_release(&queue);
}

static void check_memory(void)
{
    struct zk_last_release last = {.name = "x", .sequence = 100, .token = 1000};

    ok(zk_stands_alone(&last, 101, 1002), "the next number, soon after: alone");
    ok(zk_stands_alone(&last, 101, 1100), "as long as nobody could have made so many");
    ok(!zk_stands_alone(&last, 101, 1101), "not when the parent could have been made anew");
    ok(!zk_stands_alone(&last, 102, 1003), "not when another came between");
    ok(!zk_stands_alone(&last, 101, (1ull << 32) + 1), "not across an election");
    last.sequence = INT32_MAX - 1;
    ok(!zk_stands_alone(&last, INT32_MAX, 1002), "not where numbers end");
}

static void check_data(void)
{
    char data[ZK_DATA_MAX];
    struct zk_said said;

    zk_data_make(data, 30000, 125, "host/1/job with words");
    ok(zk_data_parse(data, &said) && said.ttl_ms == 30000 && said.waited_ms == 125 &&
           strcmp(said.label, "host/1/job with words") == 0,
       "what is written is read");
    ok(!zk_data_parse("", &said) && !zk_data_parse("1 5", &said) &&
           !zk_data_parse("1 5 5", &said) && !zk_data_parse("2 5 5 x", &said) &&
           !zk_data_parse("1 99999999999999 5 x", &said) && !zk_data_parse("1 -5 5 x", &said) &&
           !zk_data_parse("1 5 5x y", &said),
       "anything else is not");
}

/* Every session that is asked for carries its lease, and leaves what the leader needs. */
static bool margin_holds(uint32_t ttl_ms, uint32_t tick_ms)
{
    uint32_t session_ms = zk_session_for_lease(ttl_ms, tick_ms);
    uint32_t lease_ms = zk_lease_of_session(session_ms, tick_ms);

    return lease_ms >= ttl_ms &&
           session_ms - lease_ms >= tick_ms / 2 + tick_ms / 4 + session_ms / ZK_TOUCHES;
}

static void check_margin(void)
{
    static const uint32_t ticks[] = {ZK_TICK_MIN_MS, 200, 2000, 3000, ZK_TICK_MAX_MS};
    bool good = true;

    ok(zk_session_for_lease(30000, 2000) == 40000 && zk_lease_of_session(40000, 2000) == 30000,
       "the default ttl fits the default limit");
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        for (uint32_t ttl_ms = 100; ttl_ms <= HF_TTL_MAX_MS; ttl_ms += 1 + ttl_ms / 97)
            good = good && margin_holds(ttl_ms, ticks[i]);
    ok(good, "the margin is more than half a tick, whatever the ttl");
    ok(zk_lease_of_session(4000, 2000) < 3000, "the shortest session by default, too");
    ok(zk_lease_of_session(1500, 2000) == 0 && zk_lease_of_session(0, 2000) == 0,
       "a session below the margin carries nothing");
}

int main(void)
{
    check_sequence();
    check_margin();
    check_order();
    check_memory();
    check_data();
    printf("1..%d\n", tests);
    return failed != 0;
}
#else
int main(void)
{
    puts("1..0 # SKIP built without the ZooKeeper library");
    return 0;
}
#endif
