#!/bin/bash
# What `holdfast doctor` makes of a Redis: each finding on a server that deserves it, and on one that does not.
# shellcheck disable=SC2317 # functions that eventually uses by name
# run: first
set -u
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../support/doctor.sh"

# Healthy, as the manual says it: a user with the rights that it names, and no more.
redis_start a --appendonly yes --appendfsync always
calm a
mapfile -t rules < <(sed -n 's/^    ACL SETUSER locker //p' "$root/docs/redis.md")
# shellcheck disable=SC2086 # rules are words
rcli a acl setuser locker on '>s3' ${rules[0]} >/dev/null
before=$(rcli a dbsize)
url="redis://locker:s3@127.0.0.1:$(port a)?prefix=app:"
examine "$url"
is "$rc" 0 'a healthy server, with the rights that the manual names'
holds '[.verdicts[] | select(.level == "unfit" or (.level == "risky" and .rule != "fence.none"))] == []' \
    'nothing speaks against it'
holds '[.verdicts[] | select(.level == "unchecked") | .key] - ["redis.appendfsync", "redis.rights_dangerous"] == []' \
    'all but two facts are to be had with these rights'
unchecked redis.appendfsync redis.rights_dangerous
fits_schema 'the answer is as its schema says'
is "$(rcli a dbsize)" "$before" 'it left no key behind'
is "$(fact redis.max_ttl_agreed) $(fact redis.servers) $(fact redis.role)" '60000 1 master' 'facts'
holds '.store | contains("s3") | not' 'the password is not shown'
spares redis.replica redis.balanced redis.refuses redis.rights redis.max-ttl redis.old redis.endless redis.eviction \
    redis.split-brain redis.lag redis.backlog redis.persistence redis.mapped redis.waits \
    redis.plain redis.unverified clock.rate clock.offset latency.too-slow latency.slow store.closed
admin=redis://127.0.0.1:$(port a)
examine "$admin"
finds redis.dangerous
spares redis.fsync redis.persistence
is "$(fact redis.appendfsync)" always 'who may, is told the fsync policy'
examine "$admin" --ttl 61s
is "$rc" 1 'a ttl that is longer than the server grants'
finds client.ttl
examine "$admin" --ttl 60s
is "$rc" 0 'one that is as long'
spares client.ttl client.suspend

# With a fence in that very Redis, and --require, also by that user.
export HOLDFAST_REDIS_PASSWORD=s3
rcli a acl setuser locker +hget +hmget +hset >/dev/null
url="redis://locker@127.0.0.1:$(port a)?prefix=app:"
run_require() { # URL [OPTION...] : leaves $rc and $answer
    local at=$1
    shift
    answer=$("$hf" --store "$at" run -n --require correctness "$@" job -- true 2>&1)
    rc=$?
}
printf x | "$hf" --store "$url" run -n job -- "$hf" fence set "$url" app:report
ok $? 'a fenced key'
run_require "$url" --fence "$url#app:report"
is "$rc" 0 '--require correctness is met'
examine "$admin" --fence "$admin#app:report"
is "$rc" 0 'and doctor says so'
spares fence.fsync fence.forgetful fence.evictable fence.problem fence.unread
run_require "$url" --fence "$url#app:none"
is "$rc" 78 'a key that is not fenced'
like "$answer" '*app:none*no mark*' 'and what was found'

# Settings that can be changed while it runs.
rcli a config set maxmemory 100mb >/dev/null
rcli a config set maxmemory-policy allkeys-lru >/dev/null
rcli a config set appendfsync no >/dev/null
calm a 2000
rcli a set app:broken someone >/dev/null
examine "$admin?prefix=app:"
is "$rc" 1 'a lock without a ttl, and another max_ttl'
finds redis.eviction redis.fsync redis.max-ttl redis.endless
calm a
run_require "$url" --fence "$url#app:report"
is "$rc" 78 '--require refuses eviction'
like "$answer" '*maxmemory*noeviction*' 'with the setting to change'
examine "$admin" --for correctness --fence "$url#app:report"
finds fence.evictable redis.eviction
examine "$admin" --fence "$admin#app:report"
finds fence.fsync
rcli a config set maxmemory 0 >/dev/null
rcli a config set appendonly no >/dev/null
rcli a del app:broken >/dev/null
examine "$admin" --for correctness --fence "$url#app:report"
finds redis.persistence fence.forgetful
spares fence.evictable redis.eviction redis.endless
rcli a set job forever >/dev/null
rcli a set 'holdfast:{job}:t' 'x' >/dev/null
examine "$admin"
finds redis.endless
rcli a del job 'holdfast:{job}:t' >/dev/null

# Servers that refuse writes say so; nothing is written to find out.
refuses() { # WORD DESCRIPTION
    before=$(rcli a dbsize)
    examine "$admin"
    is "$rc" 1 "$2"
    finds redis.refuses
    like "$(fact redis.refusal)" "$1 *" 'in its own words'
    is "$(rcli a dbsize)" "$before" 'which leaves no key behind'
    run_require "$url" --fence "$url#app:report"
    is "$rc" 78 '--require refuses it'
}
rcli a config set min-replicas-to-write 1 >/dev/null
refuses NOREPLICAS 'a server that has too few replicas'
rcli a config set min-replicas-to-write 0 >/dev/null
rcli a config set maxmemory-policy noeviction >/dev/null
rcli a config set maxmemory 1mb >/dev/null
refuses OOM 'a server that is out of memory'
rcli a config set maxmemory 0 >/dev/null
mkdir -p "$dir/a/dump.rdb/in-the-way"
rcli a config set save '3600 1' >/dev/null
rcli a bgsave >/dev/null
unsaved() { rcli a info persistence | grep -q rdb_last_bgsave_status:err; }
eventually 10 unsaved
ok $? 'a save fails'
refuses MISCONF 'a server that cannot save'
rmdir "$dir/a/dump.rdb/in-the-way" "$dir/a/dump.rdb"
rcli a config set save '' >/dev/null

# A user that may do what it should, and may look that up: nothing that it may do is dangerous.
rcli a acl setuser locker '+acl|whoami' '+acl|dryrun' >/dev/null
examine "$url"
spares redis.dangerous
rcli a acl setuser locker '-acl|whoami' '-acl|dryrun' >/dev/null

# Rights that are missing.
rcli a acl setuser locker -zadd -blpop >/dev/null
examine "$url"
is "$rc" 1 'a user that may not do what locks need'
finds redis.rights
holds '.verdicts[] | select(.rule == "redis.rights") | .found | contains("+zadd") and contains("+blpop")' \
    'both rights are named'
run_require "$url" --fence "$url#app:report"
is "$rc" 78 '--require refuses missing rights'
rcli a acl setuser locker +zadd +blpop -info >/dev/null
examine "$url" --for correctness
is "$rc" 1 'a user that may not ask INFO'
rcli a acl setuser locker +info >/dev/null
examine "redis://locker:wrong@127.0.0.1:$(port a)"
is "$rc" 1 'a wrong password'
finds store.closed
unset HOLDFAST_REDIS_PASSWORD

# A master and its replica.
redis_start r --replicaof "127.0.0.1 $(port a)"
synced() { rcli a info replication | grep -q state=online; }
eventually 20 synced
ok $? 'a replica follows'
examine "redis://127.0.0.1:$(port r)"
is "$rc" 1 'a replica carries no lock'
finds redis.replica store.closed
rcli a config set repl-backlog-ttl 5 >/dev/null
examine "$admin" --for correctness
is "$rc" 1 'replicas that nobody asks'
finds redis.split-brain redis.backlog
rcli a config set min-replicas-to-write 1 >/dev/null
rcli a config set min-replicas-max-lag 60 >/dev/null
examine "$admin"
finds redis.lag
spares redis.split-brain
rcli a config set min-replicas-max-lag 10 >/dev/null
rcli a config set repl-backlog-ttl 3600 >/dev/null
examine "$admin"
spares redis.lag redis.backlog redis.split-brain
redis_stop r

# between NAME DELAY_MS SERVER... : port NAME leads to them in turn, and slowly
between() {
    local name=$1 delay=$2 server ports=
    shift 2
    for server; do ports="$ports $(port "$server")"; done
    # shellcheck disable=SC2086 # a list
    python3 "$root/tests/support/balancer.py" "$delay" $ports >"$dir/$name.port" &
    client_pid[$name]=$!
    disown $!
    eventually 10 test -s "$dir/$name.port"
    server_port[$name]=$(cat "$dir/$name.port")
}

# A server that is new, and something in between.
redis_start b
proxy_start p b
examine "redis://127.0.0.1:$(port p)"
finds store.quarantine redis.mapped
spares redis.balanced redis.replica
examine "redis://127.0.0.1:$(port b)"
spares redis.mapped
# A server too old for us cannot be had here: a real one says on the way that it is one.
version=$(rcli b info server | tr -d '\r' | sed -n 's/^redis_version://p')
old=6.0.99999999
examine "redis://127.0.0.1:$(port p)"
spares redis.old
proxy p mode other "redis_version:$version" "redis_version:${old:0:${#version}}"
examine "redis://127.0.0.1:$(port p)"
is "$rc" 1 'a Redis that lacks commands we need'
finds redis.old
proxy p mode pass
calm b
examine "redis://127.0.0.1:$(port b)"
spares store.quarantine

# --require looks once in each incarnation: not again under the lock if the server is the same, and again if it
# is a different one by then.
at=redis://127.0.0.1:$(port b)
"$hf" --store "$at" run -n first -- "$hf" fence write "$dir/report" -- echo one
asked() { rcli b info commandstats | tr -d '\r' | sed -n 's/^cmdstat_config|get:calls=\([0-9]*\),.*/\1/p'; }
before=$(asked)
run_require "$at" --fence "$dir/report"
is "$rc $(($(asked) - ${before:-0}))" '0 3' 'the settings are asked for once, not again under the lock'
client c "$at"
ask c acquire 1 waited 9000 0
"$hf" --store "$at" run --require correctness --fence "$dir/report" waited -- touch "$dir/ran" 2>"$dir/waits" &
waiter=$!
waits() { [ "$(rcli b zcard 'holdfast:{waited}:q')" = 1 ]; }
eventually 10 waits
ok $? 'a job that requires correctness waits for its lock'
redis_stop b KILL
server_options[b]='--maxmemory 100mb --maxmemory-policy allkeys-lru'
redis_again b
calm b
wait "$waiter"
is "$?" 78 'the server that comes back evicts: the job is refused'
like "$(cat "$dir/waits")" '*--require correctness:*' 'for that'
[ ! -e "$dir/ran" ]
ok $? 'and was not started'
gone c

# A load balancer: every connection ends at the next server. And slow answers.
between both 0 a b
examine "redis://127.0.0.1:$(port both)"
is "$rc" 1 'two servers behind one address'
finds redis.balanced
between slow 120 b
examine "redis://127.0.0.1:$(port slow)" --ttl 300ms
finds latency.too-slow
examine "redis://127.0.0.1:$(port slow)" --ttl 1s
finds latency.slow
spares latency.too-slow redis.balanced

# Clocks: one that is an hour ahead, one that runs too fast.
stepping_clock
clock_step 3600
redis_start hour
server_wrap=
examine "redis://127.0.0.1:$(port hour)"
finds clock.offset
spares clock.rate
(for step in $(seq 3601 4600); do
    clock_step "$step"
    sleep 0.05
done) &
client_pid[stepper]=$!
disown $!
examine "redis://127.0.0.1:$(port hour)" --for correctness
finds clock.rate
is "$rc" 1 'a clock that runs wrong'
gone stepper

# A server that hangs, or goes away in the middle: what is not known is not known, and it ends.
kill -STOP "$(pid hour)"
begin=$SECONDS
examine "redis://127.0.0.1:$(port hour)"
is "$rc" 69 'a server that hangs cannot be reached'
[ $((SECONDS - begin)) -le 8 ]
ok $? 'which takes a few seconds'
kill -CONT "$(pid hour)"
for mode in kill cut 'drop EVALSHA' 'drop CONFIG' 'drop TIME' 'drop SCAN' 'drop WHOAMI'; do
    proxy p mode "$mode"
    examine "redis://127.0.0.1:$(port p)"
    holds '.fit != true or ([.verdicts[] | select(.level == "unchecked")] != [])' \
        "answers that do not come ($mode, exit $rc): not fit, or not all of it was checked"
    fits_schema 'in an answer that is whole'
done
for chaos in 40 400 4000; do
    proxy p mode chaos "$chaos"
    examine "redis://127.0.0.1:$(port p)"
    holds '.fit != true or ([.verdicts[] | select(.level == "unchecked")] != [])' \
        "connections cut after about $chaos bytes (exit $rc): likewise"
done
proxy p mode pass

# Part of a cluster.
cluster_start x y z
examine "$(url x)"
holds '[.facts[] | select(.key == "redis.role") | .where] | unique | length == 3' 'each master of a cluster is told of'
holds '[.facts[] | select(.key == "redis.refusal" and .value == "")] | length == 3' 'each takes writes'
redis_stop z
examine "$(url x)"
is "$rc" 1 'a cluster of which a master is gone is not shown to be fit'
unchecked redis.role

# A network without TLS; any certificate.
python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' \
    >"$dir/address" 2>/dev/null
if [ -s "$dir/address" ] && redis_start w --bind "127.0.0.1 $(cat "$dir/address")" --protected-mode no; then
    examine "redis://$(cat "$dir/address"):$(port w)"
    finds redis.plain
fi

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$dir/key" -out "$dir/cert" \
    >/dev/null 2>&1
tls_port=$(free_port)
redis_start t --tls-port "$tls_port" --tls-cert-file "$dir/cert" --tls-key-file "$dir/key" \
    --tls-ca-cert-file "$dir/cert" --tls-auth-clients no
examine "rediss://127.0.0.1:$tls_port?verify=off"
finds redis.unverified
spares redis.plain

done_testing
