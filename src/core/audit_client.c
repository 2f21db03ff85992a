/* audit_client.c - rules about this client, stores in general, fences, and the embedded store. */
#include "core/audit_rules.h"

#include <string.h>

#define MIB (1024 * 1024LL)

enum {
    PART_TOO_SLOW = 3,    /* of the ttl: a renewal must be answered before the next is due */
    PART_SLOW = 10,       /* of the ttl: how long the keeper waits for one answer */
    RATE_MAX_PPM = 20000, /* a lease allows for a hundredth of its ttl on either side */
    OFFSET_MAX_MS = 1000, /* beyond what NTP leaves */
    INODES_MIN = 16,
    AHEAD_MAX_S = 24 * 3600,
    STALE_MAX = 1000 /* files of the dead */
};

bool hf__audit_is(const struct hf_fact *fact, const char *value)
{
    return fact != NULL && strcmp(fact->value, value) == 0;
}

bool hf__audit_is_no(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "no");
}

bool hf__audit_is_off(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "off");
}

bool hf__audit_is_one(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "1");
}

bool hf__audit_is_even(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    int64_t number = hf__audit_number(fact, 1);

    (void)facts;
    return number > 0 && number % 2 == 0;
}

bool hf__audit_is_positive(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) > 0;
}

bool hf__audit_says_something(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return fact->value[0] != '\0';
}

bool hf__audit_is_off_abroad(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_is(fact, "off") &&
           hf__audit_is(hf__audit_beside(facts, fact, "store.loopback"), "no");
}

bool hf__audit_is_another_max_ttl(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    int64_t agreed_ms = hf__audit_number(fact, 0);

    return agreed_ms > 0 &&
           agreed_ms != hf__audit_number_beside(facts, fact, "store.max_ttl", agreed_ms);
}

int64_t hf__audit_number_beside(const struct hf__audit_facts *facts, const struct hf_fact *fact,
                                const char *key, int64_t otherwise)
{
    return hf__audit_number(hf__audit_beside(facts, fact, key), otherwise);
}

static bool is_zero(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "0");
}

static bool above_max_ttl(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) >
           hf__audit_number_beside(facts, fact, "store.max_ttl", INT64_MAX);
}

static bool takes_part(const struct hf__audit_facts *facts, const struct hf_fact *fact,
                       int64_t part)
{
    int64_t ttl_ms = hf__audit_number_beside(facts, fact, "client.ttl", INT64_MAX);

    return hf__audit_number(fact, 0) / 1000 >= ttl_ms / part;
}

static bool too_slow(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return takes_part(facts, fact, PART_TOO_SLOW);
}

static bool slow(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return takes_part(facts, fact, PART_SLOW) && !too_slow(facts, fact);
}

static bool exceeds(const struct hf_fact *fact, int64_t limit)
{
    int64_t number = hf__audit_number(fact, 0);

    return number > limit || number < -limit;
}

static bool clock_is_off(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return exceeds(fact, OFFSET_MAX_MS);
}

static bool clock_runs_wrong(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return exceeds(fact, RATE_MAX_PPM);
}

static bool may_evict_marks(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return !hf__audit_is(fact, "noeviction") &&
           hf__audit_number_beside(facts, fact, "mark.maxmemory", 0) > 0;
}

const struct hf__audit_rule hf__audit_client_rules[] = {
    {"fence.none", "client.fences", HF__AUDIT_RISKY, true, is_zero, "no fence is named",
     "a holder that stood still past its ttl goes on writing, and only the resource can refuse it",
     "name what the job writes to: --fence FILE, --fence URL#KEY, or --db URL --fence TABLE"},
    {"fence.problem", "fence.problem.*", HF__AUDIT_RISKY, true, NULL, "{}",
     "a fence that is not whole lets a stale writer through", NULL},
    {"fence.unread", "fence.unread*", HF__AUDIT_RISKY, true, NULL, "{}",
     "a fence that nobody has looked at may not be there", "let this user read it"},
    {"fence.forgetful", "mark.appendonly", HF__AUDIT_RISKY, true, is_zero,
     "the Redis that keeps this fence's mark has no append-only file",
     "a restart forgets the mark, and the next stale writer is the first to be admitted",
     "appendonly yes"},
    {"fence.fsync", "mark.appendfsync", HF__AUDIT_ADVICE, false, hf__audit_is_no,
     "appendfsync is {} where this fence's mark is kept",
     "a crash of the machine can lose the latest marks", "appendfsync always, or everysec"},
    {"fence.evictable", "mark.maxmemory_policy", HF__AUDIT_RISKY, true, may_evict_marks,
     "the Redis that keeps this fence's mark may evict it ({})",
     "a mark that is evicted refuses nobody", "maxmemory-policy noeviction"},
    {"store.silent", "store.audit*", HF__AUDIT_RISKY, true, hf__audit_is_no,
     "this kind of store says nothing about itself", "what nobody can check may be anything",
     "use a store that can be asked, or look at its server yourself"},
    {"store.closed", "store.refusal", HF__AUDIT_UNFIT, false, hf__audit_says_something, "{}",
     "a store that cannot be opened grants no lock",
     "what it says; the page of the store, such as holdfast-redis(7), explains it"},
    {"client.ttl", "client.ttl", HF__AUDIT_UNFIT, false, above_max_ttl,
     "a ttl of {} is longer than this store grants", "every acquire with it is refused",
     "a shorter --ttl, or a larger max_ttl in the URL of all clients"},
    {"client.grace", "client.timing", HF__AUDIT_UNFIT, false, hf__audit_says_something, "{}",
     "a job that is ended too late runs beside the next holder's",
     "a longer --ttl or a shorter --grace"},
    {"latency.too-slow", "store.latency_p99", HF__AUDIT_UNFIT, false, too_slow,
     "one answer in a hundred takes {}, a third of the ttl or more",
     "a renewal that takes as long has no time for a second try, so leases are lost",
     "a longer --ttl, or a store that is nearer"},
    {"latency.slow", "store.latency_p99", HF__AUDIT_ADVICE, false, slow,
     "one answer in a hundred takes {}, a tenth of the ttl or more",
     "renewals are given up after a tenth of the ttl and tried again: there is little to spare",
     "a longer --ttl, or a store that is nearer"},
    {"clock.rate", "store.clock_rate", HF__AUDIT_RISKY, false, clock_runs_wrong,
     "the store's clock runs at a different speed from ours, by {}",
     "locks end there before their holders know, or long after",
     "let NTP slew the clock (chronyd, systemd-timesyncd), and step it only at boot"},
    {"clock.offset", "store.clock_offset", HF__AUDIT_ADVICE, false, clock_is_off,
     "the store's clock differs from ours by {}",
     "tokens follow the store's clock if its data is lost, and rise only if that clock is right",
     "NTP on both machines"},
    {"clock.unsynced", "client.clock_synced", HF__AUDIT_ADVICE, false, hf__audit_is_no,
     "nothing keeps this machine's clock right",
     "times shown to people, and comparisons of clocks, mean little",
     "chronyd or another "
     "NTP client"},
    {"client.suspend", "client.suspended", HF__AUDIT_ADVICE, false, hf__audit_is_positive,
     "this machine has slept for {} since it was started",
     "a job that wakes up past its deadline may write once more before it is ended",
     "systemctl mask sleep.target suspend.target hibernate.target; a fence in any case"},
    {"client.namespace", "client.clock_of_host", HF__AUDIT_ADVICE, false, hf__audit_is_no,
     "this process lives in a time namespace of its own",
     "its CLOCK_BOOTTIME is not the machine's, and an embedded store is for one such clock only",
     "do not share a file: store with processes outside this container"},
    {"store.quarantine", "store.quarantine", HF__AUDIT_ADVICE, false, hf__audit_is_positive,
     "the store grants nothing for another {}",
     "it is new, or was restarted, and may have forgotten who holds what",
     "wait; or, if nobody can hold a lock: holdfast repair --open --reason TEXT"},
    {.name = NULL}};

static bool in_memory(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "tmpfs") || hf__audit_is(fact, "ramfs");
}

static bool on_a_network(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "network");
}

static bool in_a_layer(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_is(fact, "overlay");
}

static bool disk_is_full(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) < MIB;
}

static bool disk_fills_up(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    return hf__audit_number(fact, 0) < 64 * MIB && !disk_is_full(facts, fact);
}

static bool few_inodes(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) < INODES_MIN;
}

static bool far_ahead(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) > AHEAD_MAX_S;
}

static bool many_stale(const struct hf__audit_facts *facts, const struct hf_fact *fact)
{
    (void)facts;
    return hf__audit_number(fact, 0) > STALE_MAX;
}

const struct hf__audit_rule hf__audit_file_rules[] = {
    {"file.network", "file.place", HF__AUDIT_UNFIT, true, on_a_network,
     "the directory is on a network file system", "its locks do not hold across machines",
     "a local directory, or a store made for several machines: redis, etcd, zookeeper, postgres"},
    {"file.memory", "file.fs", HF__AUDIT_RISKY, true, in_memory, "the directory is in memory ({})",
     "a reboot forgets how far tokens have gone, and only the clock keeps the next ones above them",
     "a directory on a disk, such as file:/var/lib/holdfast"},
    {"file.layer", "file.fs", HF__AUDIT_ADVICE, false, in_a_layer,
     "the directory is in a container's own layer ({})",
     "it goes with the container, and with it how far tokens have gone", "a volume"},
    {"file.denied", "file.writable", HF__AUDIT_UNFIT, true, hf__audit_is_no,
     "this user may not write into the directory", "taking a lock is a write",
     "chown or chmod it for this user, or name another directory"},
    {"file.unsafe", "file.unsafe", HF__AUDIT_UNFIT, true, hf__audit_says_something, "{}",
     "whoever may write into it can take, free or forge locks",
     "a directory of one's own with mode 0700, or 2770 with ?shared=group"},
    {"file.full", "file.free", HF__AUDIT_UNFIT, true, disk_is_full, "the disk has {} left",
     "a lock that is new, and the floor of tokens, need room",
     "free some space, or name a directory on another disk"},
    {"file.filling", "file.free", HF__AUDIT_ADVICE, false, disk_fills_up, "the disk has {} left",
     "a full disk grants no lock that is new", "free some space"},
    {"file.inodes", "file.inodes_free", HF__AUDIT_UNFIT, true, few_inodes,
     "the file system has {} inodes left", "every client makes a file",
     "remove some files, or name a directory on another disk"},
    {"file.damaged", "file.damaged", HF__AUDIT_UNFIT, true, hf__audit_says_something, "{}",
     "a store that cannot tell how far tokens have gone grants none",
     "holdfast repair --above TOKEN, with the highest token that a fence has admitted"},
    {"file.ahead", "file.floor_ahead", HF__AUDIT_ADVICE, false, far_ahead,
     "tokens are {} ahead of the clock",
     "this machine's clock was that far ahead once, or a repair said so; they rise all the same",
     "nothing, as long as fences follow this store; a fence that is moved needs a reset"},
    {"file.stale", "file.stale", HF__AUDIT_ADVICE, false, many_stale,
     "clients that are gone left {} files", "they cost inodes and time to list",
     "one client in 64 removes them when it starts; holdfast list shows who is alive"},
    {"file.absent", "file.exists", HF__AUDIT_ADVICE, false, hf__audit_is_no,
     "there is no store yet", "the first lock makes it, with mode 0700",
     "nothing, or make the directory as it is to be"},
    {.name = NULL}};
