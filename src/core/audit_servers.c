/* audit_servers.c - rules about etcd, ZooKeeper and PostgreSQL. */
#include "core/audit_rules.h"

#define MIB (1024 * 1024LL)

enum { REVISIONS_MAX = 100000, DATABASE_MAX_MIB = 1600 };

static bool never_compacted(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_is(fact, "no") &&
           hf__audit_number_beside(facts, fact, "etcd.revision", 0) > REVISIONS_MAX;
}

static bool database_is_large(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) > DATABASE_MAX_MIB * MIB;
}

static bool some_are_ill(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) < hf__audit_number_beside(facts, fact, "etcd.endpoints", 0);
}

const struct hf__audit_rule hf__audit_etcd_rules[] = {
    {"etcd.alarm", "etcd.alarms", HF__AUDIT_UNFIT, true, hf__audit_says_something,
     "etcd has raised an alarm: {}",
     "with NOSPACE it takes no write, with CORRUPT none that counts",
     "etcdctl alarm list; compact, defrag, then etcdctl alarm disarm"},
    {"etcd.leader", "etcd.leader", HF__AUDIT_UNFIT, true, hf__audit_is_no, "etcd has no leader",
     "without a majority nothing is granted and nothing renewed",
     "start the members that are down: etcdctl endpoint status --cluster"},
    {"etcd.rights", "etcd.rights", HF__AUDIT_UNFIT, true, hf__audit_is_no,
     "this user may not write below the prefix", "taking a lock is a write",
     "etcdctl role grant-permission --prefix=true ROLE readwrite PREFIX"},
    {"etcd.ill", "etcd.endpoints_healthy", HF__AUDIT_ADVICE, false, some_are_ill,
     "only {} of the servers in the URL are healthy", "the next that fails may be the majority",
     "etcdctl endpoint health"},
    {"etcd.single", "etcd.members", HF__AUDIT_ADVICE, false, hf__audit_is_one,
     "the cluster has one member", "no lock while it is down, and none ever again if its disk is",
     "three members"},
    {"etcd.even", "etcd.members", HF__AUDIT_ADVICE, false, hf__audit_is_even,
     "the cluster has {} members", "an even number survives no more failures than one less",
     "an odd number of members"},
    {"etcd.thaw", "etcd.affected", HF__AUDIT_ADVICE, false, hf__audit_says_something,
     "etcd {} may end leases that are alive when its leader was frozen",
     "two may hold a lock until the first hears of it; a fence keeps the data right",
     "etcd 3.4.31, 3.5.13, 3.6 or later"},
    {"etcd.open", "etcd.auth", HF__AUDIT_ADVICE, false, hf__audit_is_off_abroad,
     "etcd asks nobody for a password", "whoever reaches it can read owners and delete locks",
     "etcdctl auth enable, with a role for the prefix"},
    {"etcd.plain", "etcd.tls", HF__AUDIT_ADVICE, false, hf__audit_is_off_abroad,
     "it is reached over a network without TLS", "whoever listens learns the password and owners",
     "tls=on or ca=FILE in the URL"},
    {"etcd.unverified", "etcd.verify", HF__AUDIT_ADVICE, false, hf__audit_is_off,
     "its certificate is not checked", "whoever is in between can pose as the server",
     "ca=FILE in the URL instead of verify=off"},
    {"etcd.history", "etcd.compacted", HF__AUDIT_ADVICE, false, never_compacted,
     "nobody compacts its history", "every hold adds to it until the database is full",
     "--auto-compaction-retention=1h"},
    {"etcd.large", "etcd.db_size", HF__AUDIT_ADVICE, false, database_is_large,
     "its database has {}", "at the quota, 2 GiB unless it was raised, it grants nothing new",
     "compact and defrag, or raise --quota-backend-bytes"},
    {.name = NULL}};

static bool lease_is_cut(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    int64_t lease_ms = hf__audit_number(fact, 0);

    return lease_ms > 0 && lease_ms < hf__audit_number_beside(facts, fact, "client.ttl", 0);
}

/* The shortest session is two ticks, unless somebody set it. */
static bool tick_is_longer(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) / 2 >
           hf__audit_number_beside(facts, fact, "zookeeper.tick", INT64_MAX);
}

const struct hf__audit_rule hf__audit_zookeeper_rules[] = {
    {"zookeeper.rights", "zookeeper.rights", HF__AUDIT_UNFIT, true, hf__audit_says_something, "{}",
     "taking a lock makes a node",
     "create, read and delete for this user on CHROOT/holdfast, by setAcl"},
    {"zookeeper.tick", "zookeeper.session_min", HF__AUDIT_RISKY, false, tick_is_longer,
     "the shortest session is {}: its tickTime is longer than the URL says",
     "the margin between lease and session is too small, and a lease may pass on before it is over",
     "?tick= with the servers' tickTime"},
    {"zookeeper.session", "zookeeper.lease", HF__AUDIT_ADVICE, false, lease_is_cut,
     "sessions are so short that a lease lasts {}", "it is shorter than the ttl that is asked for",
     "a larger maxSessionTimeout, or a shorter --ttl"},
    {"zookeeper.single", "zookeeper.servers", HF__AUDIT_ADVICE, false, hf__audit_is_one,
     "the ensemble has one server", "no lock while it is down, and none ever again if its disk is",
     "three servers"},
    {"zookeeper.even", "zookeeper.servers", HF__AUDIT_ADVICE, false, hf__audit_is_even,
     "the ensemble has {} servers", "an even number survives no more failures than one less",
     "an odd number of servers"},
    {"zookeeper.open", "zookeeper.acl", HF__AUDIT_ADVICE, false, hf__audit_says_something,
     "anybody may change what is below our path ({})",
     "whoever reaches the server can read owners and delete locks",
     "USER:PASSWORD@ in the URL, from the start; for what is there already, setAcl -R"},
    {.name = NULL}};

static bool standby_may_be_behind(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_is(fact, "") &&
           hf__audit_number_beside(facts, fact, "postgres.standbys", 0) > 0;
}

static bool is_yes(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "yes");
}

static bool is_on(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "on");
}

const struct hf__audit_rule hf__audit_postgres_rules[] = {
    {"postgres.standby", "postgres.in_recovery", HF__AUDIT_UNFIT, true, is_yes,
     "this server is a standby", "a standby grants nothing",
     "name the primary, or all hosts with target_session_attrs=read-write"},
    {"postgres.read-only", "postgres.read_only", HF__AUDIT_UNFIT, true, is_on,
     "default_transaction_read_only is on for this role", "whoever may only read takes no lock",
     "ALTER ROLE or ALTER DATABASE ... SET default_transaction_read_only = off"},
    {"postgres.rights", "postgres.rights", HF__AUDIT_UNFIT, true, hf__audit_says_something, "{}",
     "every request calls a function of the schema holdfast",
     "GRANT USAGE ON SCHEMA holdfast TO the role; or have its owner take a first lock"},
    {"postgres.max-ttl", "postgres.max_ttl_agreed", HF__AUDIT_UNFIT, true,
     hf__audit_is_another_max_ttl, "its clients agreed on max_ttl={}, and this URL says another",
     "every acquire is refused", "max_ttl={} in the URL"},
    {"postgres.fsync", "postgres.fsync", HF__AUDIT_RISKY, true, hf__audit_is_off, "fsync is off",
     "a crash of the machine can forget grants and tokens, or the whole database", "fsync = on"},
    {"postgres.pages", "postgres.full_page_writes", HF__AUDIT_RISKY, true, hf__audit_is_off,
     "full_page_writes is off",
     "a crash of the machine can damage the rows that keep tokens rising", "full_page_writes = on"},
    {"postgres.async", "postgres.synchronous_standby_names", HF__AUDIT_RISKY, true,
     standby_may_be_behind, "it has standbys, and commits without them",
     "after a failover an old primary that is cut off goes on granting, and two servers can give "
     "out one token twice",
     "synchronous_standby_names = 'ANY 1 (*)'"},
    {"postgres.commit", "postgres.synchronous_commit", HF__AUDIT_ADVICE, false, hf__audit_is_off,
     "synchronous_commit is off by default",
     "grants are committed all the same, but what a job writes behind a fence may be lost",
     "synchronous_commit = on"},
    {"postgres.pooler", "postgres.pooler", HF__AUDIT_ADVICE, false, is_yes,
     "a pooler stands in between", "nobody can be woken through it: waiters look every second",
     "listen=URL with the direct way to the server"},
    {"postgres.plain", "postgres.tls", HF__AUDIT_ADVICE, false, hf__audit_is_off_abroad,
     "it is reached over a network without TLS", "whoever listens learns the password and owners",
     "sslmode=verify-full"},
    {.name = NULL}};
