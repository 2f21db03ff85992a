/* test_audit.c - the rules of the doctor, audit.c and its tables audit_*.c: each finds what
 * deserves it, and nothing else. */
#include "core/audit_rules.h"
#include "../support/check.h"

#include <string.h>

enum { MAX = 32 };

/* A rule, a fact that deserves it and one that does not, and up to two facts beside it. */
static const struct row {
    const char *rule;
    const char *key;
    const char *bad;
    const char *good;
    const char *beside[2];       /* their keys */
    const char *beside_value[2]; /* in both cases */
    const char *unit;
} rows[] = {
    {"fence.none", "client.fences", "0", "1", {NULL}, {NULL}, NULL},
    {"fence.forgetful", "mark.appendonly", "0", "1", {NULL}, {NULL}, NULL},
    {"fence.fsync", "mark.appendfsync", "no", "everysec", {NULL}, {NULL}, NULL},
    {"fence.evictable",
     "mark.maxmemory_policy",
     "allkeys-lru",
     "noeviction",
     {"mark.maxmemory"},
     {"1048576"},
     NULL},
    {"store.silent", "store.audit", "no", "yes", {NULL}, {NULL}, NULL},
    {"store.closed", "store.refusal", "no such thing", "", {NULL}, {NULL}, NULL},
    {"client.ttl", "client.ttl", "60001", "60000", {"store.max_ttl"}, {"60000"}, "ms"},
    {"client.grace", "client.timing", "too short", "", {NULL}, {NULL}, NULL},
    {"latency.too-slow",
     "store.latency_p99",
     "10000000",
     "9999000",
     {"client.ttl"},
     {"30000"},
     "us"},
    {"latency.slow", "store.latency_p99", "3000000", "2999000", {"client.ttl"}, {"30000"}, "us"},
    {"clock.rate", "store.clock_rate", "-20001", "20000", {NULL}, {NULL}, "ppm"},
    {"clock.offset", "store.clock_offset", "-1001", "1000", {NULL}, {NULL}, "ms"},
    {"clock.unsynced", "client.clock_synced", "no", "yes", {NULL}, {NULL}, NULL},
    {"client.suspend", "client.suspended", "1", "0", {NULL}, {NULL}, "ms"},
    {"client.namespace", "client.clock_of_host", "no", "yes", {NULL}, {NULL}, NULL},
    {"store.quarantine", "store.quarantine", "1", "0", {NULL}, {NULL}, "ms"},
    {"file.network", "file.place", "network", "local", {NULL}, {NULL}, NULL},
    {"file.memory", "file.fs", "tmpfs", "ext4", {NULL}, {NULL}, NULL},
    {"file.layer", "file.fs", "overlay", "xfs", {NULL}, {NULL}, NULL},
    {"file.denied", "file.writable", "no", "yes", {NULL}, {NULL}, NULL},
    {"file.unsafe", "file.unsafe", "can be written by others", "", {NULL}, {NULL}, NULL},
    {"file.full", "file.free", "1048575", "1048576", {NULL}, {NULL}, "bytes"},
    {"file.filling", "file.free", "67108863", "67108864", {NULL}, {NULL}, "bytes"},
    {"file.inodes", "file.inodes_free", "15", "16", {NULL}, {NULL}, NULL},
    {"file.damaged", "file.damaged", "the floor is damaged", "", {NULL}, {NULL}, NULL},
    {"file.ahead", "file.floor_ahead", "86401", "86400", {NULL}, {NULL}, "s"},
    {"file.stale", "file.stale", "1001", "1000", {NULL}, {NULL}, NULL},
    {"file.absent", "file.exists", "no", "yes", {NULL}, {NULL}, NULL},
    {"redis.replica", "redis.role", "slave", "master", {NULL}, {NULL}, NULL},
    {"redis.balanced", "redis.servers", "2", "1", {NULL}, {NULL}, NULL},
    {"redis.refuses", "redis.refusal", "OOM command", "", {"redis.role"}, {"master"}, NULL},
    {"redis.rights", "redis.rights_missing", "+zadd", "", {NULL}, {NULL}, NULL},
    {"redis.max-ttl", "redis.max_ttl_agreed", "2000", "60000", {"store.max_ttl"}, {"60000"}, "ms"},
    {"redis.old", "redis.version_number", "601", "602", {NULL}, {NULL}, NULL},
    {"redis.endless", "redis.locks_without_ttl", "1", "0", {NULL}, {NULL}, NULL},
    {"redis.eviction",
     "redis.maxmemory_policy",
     "volatile-ttl",
     "noeviction",
     {"redis.maxmemory"},
     {"1"},
     NULL},
    {"redis.split-brain", "redis.min_replicas", "no", "yes", {"redis.replicas"}, {"1"}, NULL},
    {"redis.lag",
     "redis.min_replicas_max_lag",
     "60",
     "10",
     {"store.max_ttl", "redis.replicas"},
     {"60000", "1"},
     "s"},
    {"redis.backlog",
     "redis.repl_backlog_ttl",
     "59",
     "60",
     {"store.max_ttl", "redis.replicas"},
     {"60000", "1"},
     "s"},
    {"redis.persistence", "redis.appendonly", "0", "1", {NULL}, {NULL}, NULL},
    {"redis.fsync", "redis.appendfsync", "no", "always", {NULL}, {NULL}, NULL},
    {"redis.mapped", "redis.port", "6379", "7000", {"redis.port_dialled"}, {"7000"}, NULL},
    {"redis.waits", "redis.quarantine", "1", "0", {NULL}, {NULL}, "ms"},
    {"redis.dangerous", "redis.rights_dangerous", "flushall", "", {NULL}, {NULL}, NULL},
    {"redis.plain", "redis.tls", "off", "on", {"store.loopback"}, {"no"}, NULL},
    {"redis.unverified", "redis.verify", "off", "on", {NULL}, {NULL}, NULL},
    {"redlock.clocks",
     "redlock.clocks_apart",
     "20001",
     "20000",
     {"redlock.clocks_limit"},
     {"20000"},
     "ms"},
    {"redlock.refuse", "redlock.nodes_refusing", "2", "1", {"redlock.nodes"}, {"3"}, NULL},
    {"redlock.refuses", "redis.refusal", "OOM command", "", {"redlock.nodes"}, {"3"}, NULL},
    {"redlock.missing", "redlock.nodes_answering", "2", "3", {"redlock.nodes"}, {"3"}, NULL},
    {"redlock.one-host", "redlock.same_host", "a:1 a:2", "", {NULL}, {NULL}, NULL},
    {"etcd.alarm", "etcd.alarms", "NOSPACE", "", {NULL}, {NULL}, NULL},
    {"etcd.leader", "etcd.leader", "no", "yes", {NULL}, {NULL}, NULL},
    {"etcd.rights", "etcd.rights", "no", "yes", {NULL}, {NULL}, NULL},
    {"etcd.ill", "etcd.endpoints_healthy", "2", "3", {"etcd.endpoints"}, {"3"}, NULL},
    {"etcd.single", "etcd.members", "1", "3", {NULL}, {NULL}, NULL},
    {"etcd.even", "etcd.members", "4", "5", {NULL}, {NULL}, NULL},
    {"etcd.thaw", "etcd.affected", "3.5.12", "", {NULL}, {NULL}, NULL},
    {"etcd.open", "etcd.auth", "off", "on", {"store.loopback"}, {"no"}, NULL},
    {"etcd.plain", "etcd.tls", "off", "on", {"store.loopback"}, {"no"}, NULL},
    {"etcd.unverified", "etcd.verify", "off", "on", {NULL}, {NULL}, NULL},
    {"etcd.history", "etcd.compacted", "no", "yes", {"etcd.revision"}, {"100001"}, NULL},
    {"etcd.large", "etcd.db_size", "1677721601", "1677721600", {NULL}, {NULL}, "bytes"},
    {"zookeeper.rights", "zookeeper.rights", "not allowed", "", {NULL}, {NULL}, NULL},
    {"zookeeper.tick", "zookeeper.session_min", "6000", "4000", {"zookeeper.tick"}, {"2000"}, "ms"},
    {"zookeeper.session", "zookeeper.lease", "29999", "30000", {"client.ttl"}, {"30000"}, "ms"},
    {"zookeeper.single", "zookeeper.servers", "1", "3", {NULL}, {NULL}, NULL},
    {"zookeeper.even", "zookeeper.servers", "2", "3", {NULL}, {NULL}, NULL},
    {"zookeeper.open", "zookeeper.acl", "world:anyone:cdrwa", "", {NULL}, {NULL}, NULL},
    {"postgres.standby", "postgres.in_recovery", "yes", "no", {NULL}, {NULL}, NULL},
    {"postgres.read-only", "postgres.read_only", "on", "off", {NULL}, {NULL}, NULL},
    {"postgres.rights", "postgres.rights", "no USAGE", "", {NULL}, {NULL}, NULL},
    {"postgres.fsync", "postgres.fsync", "off", "on", {NULL}, {NULL}, NULL},
    {"postgres.pages", "postgres.full_page_writes", "off", "on", {NULL}, {NULL}, NULL},
    {"postgres.async",
     "postgres.synchronous_standby_names",
     "",
     "s1",
     {"postgres.standbys"},
     {"1"},
     NULL},
    {"postgres.commit", "postgres.synchronous_commit", "off", "on", {NULL}, {NULL}, NULL},
    {"postgres.pooler", "postgres.pooler", "yes", "no", {NULL}, {NULL}, NULL},
    {"postgres.plain", "postgres.tls", "off", "on", {"store.loopback"}, {"no"}, NULL},
    {"postgres.max-ttl",
     "postgres.max_ttl_agreed",
     "2000",
     "0",
     {"store.max_ttl"},
     {"60000"},
     "ms"},
};

static struct hf_fact fact(const char *key, const char *value)
{
    return (struct hf_fact){.size = sizeof(struct hf_fact),
                            .key = key,
                            .value = value,
                            .unit = "",
                            .source = "a test",
                            .where = ""};
}

/* The finding of that rule about a fact that is known; NULL: there is none. */
static const struct hf__finding *find(const struct hf__finding *findings, size_t count,
                                      const char *rule)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(findings[i].rule->name, rule) == 0 && findings[i].level != HF__AUDIT_UNCHECKED)
            return &findings[i];
    return NULL;
}

static bool deserves(const struct row *row, const char *value, bool beside)
{
    struct hf_fact items[3] = {fact(row->key, value)};
    struct hf__audit_facts facts = {.items = items, .count = 1};
    struct hf__finding findings[MAX];
    size_t count;

    items[0].unit = row->unit != NULL ? row->unit : "";
    for (size_t i = 0; i < 2 && beside && row->beside[i] != NULL; i++)
        items[facts.count++] = fact(row->beside[i], row->beside_value[i]);
    count = hf__audit_judge(&facts, findings, MAX);
    return find(findings, count, row->rule) != NULL;
}

static void each_rule_finds_what_deserves_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(deserves(&rows[i], rows[i].bad, true), i);
        check_row(!deserves(&rows[i], rows[i].good, true), i);
        /* Without the facts beside it there is nothing to hold against it. */
        if (rows[i].beside[0] != NULL)
            check_row(!deserves(&rows[i], rows[i].bad, false), i);
    }
}

static void no_rule_is_untested_and_each_says_all_three(void **state)
{
    (void)state;
    for (const struct hf__audit_rule *const *table = hf__audit_tables; *table != NULL; table++) {
        for (const struct hf__audit_rule *rule = *table; rule->name != NULL; rule++) {
            bool tested =
                strcmp(rule->name, "fence.problem") == 0 || strcmp(rule->name, "fence.unread") == 0;

            for (size_t i = 0; i < COUNT(rows); i++)
                tested = tested || strcmp(rows[i].rule, rule->name) == 0;
            if (!tested)
                fail_msg("rule %s", rule->name);
            assert_true(rule->found[0] != '\0' && rule->why[0] != '\0');
            assert_true(rule->change == NULL || rule->change[0] != '\0');
            assert_true(rule->level != HF__AUDIT_UNCHECKED);
            assert_true(!rule->decisive || rule->level != HF__AUDIT_ADVICE);
        }
    }
}

static void what_could_not_be_looked_at_is_never_fine(void **state)
{
    struct hf_fact items[] = {fact("mark.maxmemory_policy", ""), fact("mark.appendonly", "1")};
    const struct hf__audit_facts facts = {.items = items, .count = 2};
    struct hf__finding findings[MAX];
    char text[HF__AUDIT_TEXT_MAX];
    size_t count;

    (void)state;
    items[0].unknown = "NOPERM";
    count = hf__audit_judge(&facts, findings, MAX);
    assert_true(count > 0);
    assert_null(find(findings, count, "fence.evictable"));
    assert_int_equal(findings[0].level, HF__AUDIT_UNCHECKED);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_CORRECTNESS), HF__NOT_SHOWN);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_EFFICIENCY), HF__FIT);
    /* Without the right to take a lock there is none at all. */
    items[0].key = "redis.rights_missing";
    count = hf__audit_judge(&facts, findings, MAX);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_EFFICIENCY), HF__NOT_SHOWN);
    for (size_t i = 0; i < count; i++) {
        hf__audit_found(&findings[i], text);
        assert_memory_equal(text, "could not check: ", strlen("could not check: "));
    }
}

/* A server that tells of itself and leaves out what decides. */
static void what_was_not_told_is_missed_at_each_server(void **state)
{
    struct hf_fact items[] = {fact("redis.role", "master"), fact("redis.role", "master"),
                              fact("redis.maxmemory_policy", "noeviction")};
    const struct hf__audit_facts facts = {.items = items, .count = 3};
    struct hf__finding findings[MAX];
    size_t missed = 0;
    size_t count;

    (void)state;
    items[0].where = "a:1";
    items[1].where = items[2].where = "b:1";
    count = hf__audit_judge(&facts, findings, MAX);
    for (size_t i = 0; i < count; i++) {
        assert_null(findings[i].fact);
        if (strcmp(findings[i].rule->name, "redis.eviction") == 0) {
            assert_string_equal(findings[i].where, "a:1");
            missed++;
        }
    }
    assert_int_equal(missed, 1);
}

static void the_gravest_comes_first_and_decides(void **state)
{
    struct hf_fact items[] = {fact("client.clock_synced", "no"), fact("client.fences", "0"),
                              fact("file.writable", "no")};
    struct hf__audit_facts facts = {.items = items, .count = 2};
    struct hf__finding findings[MAX];
    size_t count = hf__audit_judge(&facts, findings, MAX);

    (void)state;
    assert_int_equal(findings[0].level, HF__AUDIT_RISKY);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_EFFICIENCY), HF__FIT);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_CORRECTNESS), HF__NOT_FIT);
    facts.count = 3;
    count = hf__audit_judge(&facts, findings, MAX);
    assert_int_equal(findings[0].level, HF__AUDIT_UNFIT);
    assert_int_equal(hf__audit_fitness(findings, count, HF__FOR_EFFICIENCY), HF__NOT_FIT);
    for (size_t i = 1; i < count; i++)
        assert_true(findings[i - 1].level <= findings[i].level);
    assert_int_equal(hf__audit_judge(&facts, findings, 1), 1);
}

static void a_fence_has_its_own_remedy(void **state)
{
    struct hf_fact items[] = {fact("fence.problem.installed", "orders is not fenced"),
                              fact("fence.remedy", "run its migration"),
                              fact("fence.problem.roles", "everybody may write"),
                              fact("fence.unread", "")};
    const struct hf__audit_facts facts = {.items = items, .count = 4};
    struct hf__finding findings[MAX];
    char text[HF__AUDIT_TEXT_MAX];
    size_t count;

    (void)state;
    items[3].unknown = "no answer";
    count = hf__audit_judge(&facts, findings, MAX);
    assert_int_equal(count, 3);
    hf__audit_found(&findings[0], text);
    assert_string_equal(text, "orders is not fenced");
    hf__audit_change(&findings[0], text);
    assert_string_equal(text, "run its migration");
    hf__audit_change(&findings[1], text);
    assert_string_equal(text, "");
    assert_int_equal(findings[2].level, HF__AUDIT_UNCHECKED);
    assert_true(hf__audit_counts(&findings[2], HF__FOR_CORRECTNESS));
}

static void values_are_written_as_people_write_them(void **state)
{
    struct hf_fact items[] = {fact("store.quarantine", "59500")};
    const struct hf__audit_facts facts = {.items = items, .count = 1};
    struct hf__finding findings[MAX];
    char text[HF__AUDIT_TEXT_MAX];
    char endless[2 * HF__AUDIT_TEXT_MAX];

    (void)state;
    items[0].unit = "ms";
    assert_true(hf__audit_judge(&facts, findings, MAX) > 0);
    hf__audit_found(&findings[0], text);
    assert_string_equal(text, "the store grants nothing for another 59s");
    items[0] = fact("file.free", "1048575");
    items[0].unit = "bytes";
    assert_true(hf__audit_judge(&facts, findings, MAX) > 0);
    hf__audit_found(&findings[0], text);
    assert_string_equal(text, "the disk has 1048575 bytes left");
    items[0].value = "67108863";
    assert_true(hf__audit_judge(&facts, findings, MAX) > 0);
    hf__audit_found(&findings[0], text);
    assert_string_equal(text, "the disk has 63 MiB left");
    items[0] = fact("etcd.db_size", "21474836480");
    items[0].unit = "bytes";
    assert_true(hf__audit_judge(&facts, findings, MAX) > 0);
    hf__audit_found(&findings[0], text);
    assert_string_equal(text, "its database has 20 GiB");
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    items[0] = fact("store.refusal", endless);
    assert_true(hf__audit_judge(&facts, findings, MAX) > 0);
    hf__audit_found(&findings[0], text);
    assert_int_equal(strlen(text), HF__AUDIT_TEXT_MAX - 1);
}

static void numbers_that_are_none(void **state)
{
    static const char *const none[] = {"", "-", "x", "1x", "99999999999999999999", "--1"};
    struct hf_fact one = fact("x.y", "-12");

    (void)state;
    assert_int_equal(hf__audit_number(&one, 7), -12);
    assert_int_equal(hf__audit_number(NULL, 7), 7);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        one.value = none[i];
        assert_int_equal(hf__audit_number(&one, 7), 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_finds_what_deserves_it),
        cmocka_unit_test(no_rule_is_untested_and_each_says_all_three),
        cmocka_unit_test(what_could_not_be_looked_at_is_never_fine),
        cmocka_unit_test(what_was_not_told_is_missed_at_each_server),
        cmocka_unit_test(the_gravest_comes_first_and_decides),
        cmocka_unit_test(a_fence_has_its_own_remedy),
        cmocka_unit_test(values_are_written_as_people_write_them),
        cmocka_unit_test(numbers_that_are_none),
    };

    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
