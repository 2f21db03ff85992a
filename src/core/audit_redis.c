/* audit_redis.c - rules about Redis, and about the nodes of a Redlock. */
#include "core/audit_rules.h"

static bool no_master(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return !hf__audit_is(fact, "master");
}

static bool may_evict(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return !hf__audit_is(fact, "noeviction") &&
           hf__audit_number_beside(facts, fact, "redis.maxmemory", 0) > 0;
}

static bool has_replicas(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number_beside(facts, fact, "redis.replicas", 0) > 0;
}

static bool replicas_are_not_asked(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_is(fact, "no") && has_replicas(facts, fact);
}

static bool lag_is_long(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return has_replicas(facts, fact) &&
           hf__audit_number(fact, 0) * 1000 >=
               hf__audit_number_beside(facts, fact, "store.max_ttl", INT64_MAX);
}

static bool backlog_is_short(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    int64_t seconds = hf__audit_number(fact, 0);

    return seconds > 0 && has_replicas(facts, fact) &&
           seconds * 1000 < hf__audit_number_beside(facts, fact, "store.max_ttl", 0);
}

static bool another_port(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    int64_t dialled = hf__audit_number_beside(facts, fact, "redis.port_dialled", 0);
    int64_t port = hf__audit_number(fact, 0);

    return port > 0 && dialled > 0 && port != dialled;
}

/* A replica does, and there is a rule about that. */
static bool refuses_as_master(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_says_something(facts, fact) &&
           hf__audit_is(hf__audit_beside(facts, fact, "redis.role"), "master") &&
           hf__audit_number_beside(facts, fact, "redlock.nodes", 0) == 0;
}

static bool node_refuses(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_says_something(facts, fact) &&
           hf__audit_number_beside(facts, fact, "redlock.nodes", 0) > 0;
}

static bool majority_refuses(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return 2 * hf__audit_number(fact, 0) >
           hf__audit_number_beside(facts, fact, "redlock.nodes", INT64_MAX);
}

static bool several_servers(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 1) > 1;
}

static bool is_old(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) < 602;
}

static bool no_append_only(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "0");
}

static bool clocks_apart(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) >
           hf__audit_number_beside(facts, fact, "redlock.clocks_limit", INT64_MAX);
}

static bool nodes_missing(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) < hf__audit_number_beside(facts, fact, "redlock.nodes", 0);
}

const struct hf__audit_rule hf__audit_redis_rules[] = {
    {"redis.replica", "redis.role", HF__AUDIT_UNFIT, true, no_master, "this server is a {}",
     "a replica grants nothing", "name its master, or its sentinels: redis+sentinel://HOST/MASTER"},
    {"redis.balanced", "redis.servers", HF__AUDIT_UNFIT, true, several_servers,
     "{} servers answer behind this address",
     "a lock that is taken at one of them is free at the others",
     "name one server, past the proxy or load balancer"},
    {"redis.refuses", "redis.refusal", HF__AUDIT_UNFIT, true, refuses_as_master,
     "it refuses writes: {}", "no lock can be taken as long as it does",
     "maxmemory, min-replicas-to-write or its disk, as it says"},
    {"redis.rights", "redis.rights_missing", HF__AUDIT_UNFIT, true, hf__audit_says_something,
     "this user may not run: {}", "taking, waiting for or releasing a lock fails half-way",
     "ACL SETUSER with what is missing; docs/redis.md has the whole line"},
    {"redis.max-ttl", "redis.max_ttl_agreed", HF__AUDIT_UNFIT, true, hf__audit_is_another_max_ttl,
     "its clients agreed on max_ttl={}, and this URL says another", "every acquire is refused",
     "max_ttl={} in the URL"},
    {"redis.old", "redis.version_number", HF__AUDIT_UNFIT, false, is_old,
     "this Redis is older than 6.2", "holdfast needs commands that it does not have",
     "a newer Redis, or Valkey"},
    {"redis.endless", "redis.locks_without_ttl", HF__AUDIT_UNFIT, false, hf__audit_is_positive,
     "at least {} lock keys have no ttl",
     "they are somebody's broken locks: waiting for them never ends",
     "find who sets them without PX; then PEXPIRE or DEL them"},
    {"redis.eviction", "redis.maxmemory_policy", HF__AUDIT_RISKY, true, may_evict,
     "maxmemory is set and the policy is {}",
     "Redis may evict a lock that is held, and the record that keeps its tokens rising",
     "maxmemory-policy noeviction, or a Redis of its own for locks"},
    {"redis.split-brain", "redis.min_replicas", HF__AUDIT_RISKY, true, replicas_are_not_asked,
     "it has replicas, and grants whether or not they follow",
     "after a failover an old master that is cut off goes on granting, and two servers can give "
     "out one token twice",
     "min-replicas-to-write 1, and min-replicas-max-lag below max_ttl"},
    {"redis.lag", "redis.min_replicas_max_lag", HF__AUDIT_ADVICE, false, lag_is_long,
     "min-replicas-max-lag is {}, as long as max_ttl or longer",
     "an old master that is cut off grants for that long", "min-replicas-max-lag below max_ttl"},
    {"redis.backlog", "redis.repl_backlog_ttl", HF__AUDIT_ADVICE, false, backlog_is_short,
     "repl-backlog-ttl is {}, shorter than max_ttl",
     "a promoted server forgets that it was promoted before its quarantine is over",
     "repl-backlog-ttl 3600"},
    {"redis.persistence", "redis.appendonly", HF__AUDIT_ADVICE, false, no_append_only,
     "there is no append-only file",
     "a restart loses records, so that a job that is done is done again, and begins a quarantine",
     "appendonly yes"},
    {"redis.fsync", "redis.appendfsync", HF__AUDIT_ADVICE, false, hf__audit_is_no,
     "appendfsync is {}", "a crash of the machine loses up to half a minute of records",
     "appendfsync everysec, or always"},
    {"redis.mapped", "redis.port", HF__AUDIT_ADVICE, false, another_port,
     "the server says that its port is {}, which is not the one that was asked",
     "something stands in between: a proxy, or a mapped port of a container",
     "if it is a proxy, name the server itself"},
    {"redis.waits", "redis.quarantine", HF__AUDIT_ADVICE, false, hf__audit_is_positive,
     "this server grants nothing for another {}",
     "it is new, or was restarted or promoted, and may have forgotten who holds what",
     "wait; or, if nobody can hold a lock: holdfast repair --open --reason TEXT"},
    {"redis.dangerous", "redis.rights_dangerous", HF__AUDIT_ADVICE, false, hf__audit_says_something,
     "this user may also run: {}", "one such command by another program wipes out every lock",
     "a user of its own for locks: docs/redis.md has the ACL line"},
    {"redis.plain", "redis.tls", HF__AUDIT_ADVICE, false, hf__audit_is_off_abroad,
     "it is reached over a network without TLS", "whoever listens learns the password and owners",
     "rediss://, and tls-port at the server"},
    {"redis.unverified", "redis.verify", HF__AUDIT_ADVICE, false, hf__audit_is_off,
     "its certificate is not checked", "whoever is in between can pose as the server",
     "ca=FILE in the URL instead of verify=off"},
    {"redlock.clocks", "redlock.clocks_apart", HF__AUDIT_RISKY, true, clocks_apart,
     "the nodes' clocks are {} apart",
     "after a node forgot its counter the order of tokens rests on clocks that are closer",
     "NTP on all nodes"},
    {"redlock.refuse", "redlock.nodes_refusing", HF__AUDIT_UNFIT, true, majority_refuses,
     "{} of the nodes refuse writes", "no majority can grant a lock as long as they do",
     "what is said below about each of them"},
    {"redlock.refuses", "redis.refusal", HF__AUDIT_ADVICE, false, node_refuses,
     "this node refuses writes: {}", "the next one that fails may be the majority",
     "maxmemory, min-replicas-to-write or its disk, as it says"},
    {"redlock.missing", "redlock.nodes_answering", HF__AUDIT_ADVICE, false, nodes_missing,
     "only {} of the nodes answer", "the next one that fails may be the majority",
     "start or replace the others"},
    {"redlock.one-host", "redlock.same_host", HF__AUDIT_ADVICE, false, hf__audit_says_something,
     "these nodes are on one host: {}",
     "it takes their votes with it when it fails, as one Redis would", "a machine for each node"},
    {.name = NULL}};
