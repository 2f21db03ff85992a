#!/bin/bash
# Three real sentinels, a master and a replica.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/doctor.sh"

redis_start m
redis_start r --replicaof 127.0.0.1 "$(port m)" --repl-diskless-sync-delay 0
eventually 20 eval 'rcli r info replication | grep -q master_link_status:up'
sentinel_start() { # NAME MASTER [LINE]
    server_port[$1]=$(free_port)
    mkdir -p "$dir/$1"
    cat >"$dir/$1/conf" <<EOT
port ${server_port[$1]}
bind 127.0.0.1
dir $dir/$1
logfile $dir/$1/log
sentinel monitor mymaster 127.0.0.1 $(port "$2") 2
sentinel down-after-milliseconds mymaster 1500
sentinel failover-timeout mymaster 10000
${3-}
EOT
    redis-server "$dir/$1/conf" --sentinel >/dev/null 2>&1 &
    server_pid[$1]=$!
}
hosts=
for s in s1 s2 s3; do
    sentinel_start $s m
    hosts=$hosts${hosts:+,}127.0.0.1:$(port $s)
done
ready() {
    local s
    for s in 1 2 3; do
        rcli "s$s" sentinel master mymaster 2>/dev/null | tr '\n' ' ' | grep -q 'num-other-sentinels 2' || return 1
        rcli "s$s" sentinel replicas mymaster 2>/dev/null | grep -q 'slave-priority\|name' || return 1
    done
}
eventually 40 ready
ok $? 'three sentinels know each other'
calm m 12000
client c "redis+sentinel://$hosts/mymaster?max_ttl=12s"
is "$answer" ok 'the sentinels name the master'
ask c acquire 1 x 4000 0
like "$answer" 'ok *' 'acquire'
t=$(token)
ask c release 1
client n
ask n open "redis+sentinel://$hosts/nobody"
like "$answer" 'HF_UNREACHABLE*no such master*' 'a master that they do not know'
ask n open "redis+sentinel://127.0.0.1:1,$hosts/mymaster?max_ttl=12s"
is "$answer" ok 'one sentinel that is down does not matter'

# What doctor says is about the master that they name.
all="redis+sentinel://$hosts/mymaster?max_ttl=12s"
examine "$all"
is "$rc" 0 'a master that sentinels name carries a lock'
holds '[.facts[] | select(.key == "redis.role") | .where] == [$m]' 'the master is what is told of' \
    --arg m "127.0.0.1:$(port m)"
is "$(fact redis.role) $(fact redis.max_ttl_agreed)" 'master 12000' 'facts'
spares redis.replica redis.balanced redis.mapped redis.max-ttl store.closed
finds redis.split-brain
"$hf" --store "$all" run -n job -- "$hf" fence write "$dir/report" -- echo one
run_require() {
    answer=$("$hf" --store "$all" run -n --require correctness --fence "$dir/report" job -- true 2>&1)
    rc=$?
}
run_require
is "$rc" 78 '--require: after a failover, tokens could repeat'
like "$answer" '*min-replicas-to-write*' 'and what to change'
rcli m config set min-replicas-to-write 1 >/dev/null
run_require
is "$rc" 0 'where the replica is waited for it is met'
examine "$all" --fence "$dir/report"
is "$rc" 0 'and fit for correctness'
spares redis.split-brain
fits_schema 'the answer is as its schema says'
rcli m config set min-replicas-to-write 0 >/dev/null
examine "redis+sentinel://$hosts/nobody"
is "$rc" 69 'a master that they do not know cannot be looked at'

client l "redis+sentinel://$hosts/mymaster?max_ttl=12s"
ask c acquire 1 x 4000 0
ask l break x "$(token)"
like "$answer" 'ok left=*' 'a hold is broken at the master'
ask c renew 1 4000
like "$answer" 'HF_LOST*was broken by breaker: a test' 'and its holder hears by whom'
ask c release 1
ask c acquire 1 held 5000 0
ask c acquire 3 kept 12000 0 kept
ask c put 3 k value
like "$answer" 'ok *appendonly*' 'a record is written, and the replica has it'
eventually 5 eval '[ "$(rcli r exists kept)" = 1 ]'
redis_stop m KILL
ask n acquire 1 x 4000 0
like "$answer" '@(HF_UNREACHABLE|HF_UNKNOWN|HF_QUARANTINE)*' 'without a master: unreachable or unknown, not busy'
tell n acquire 1 held 4000 60000
eventually 40 eval 'rcli r info replication | grep -q role:master'
ok $? 'the sentinels promote the replica'
hear n 60
like "$answer" 'ok *' 'a waiting client follows, and gets what nobody can hold any more'
above "$(token)" "$t" 'with a larger token'
ask c status kept
like "$answer" '*held=1*' 'a lock that the replica knew of is not given to another'
ask l get kept k
like "$answer" 'ok \[k=value *' 'its record is there'
ask c put 3 k again
like "$answer" 'ok *appendonly*' 'and its holder writes on'
lists() { ask l list - && [[ $answer == *'kept held=1'* ]]; }
eventually 10 lists
ok $? 'and one that only lists finds the new master too'
ask c acquire 2 y 4000 20000
like "$answer" 'ok *' 'so does the other'

# A sentinel with a password of its own.
sentinel_start guarded r 'requirepass "open sesame"'
guarded=redis+sentinel://127.0.0.1:$(port guarded)/mymaster
asks() { ask n open "$guarded?max_ttl=12s"; [[ $answer == *password* ]]; }
eventually 10 asks
like "$answer" 'HF_DENIED*it needs a password*' 'a sentinel that wants a password says so'
echo 'open sesame' >"$dir/right"
echo 'open barley' >"$dir/wrong"
ask n open "$guarded?max_ttl=12s&sentinel_password_file=$dir/wrong"
like "$answer" 'HF_DENIED*WRONGPASS*' 'a wrong one is denied'
[[ $answer != *barley* ]]
ok $? 'and not shown'
ask n open "$guarded?max_ttl=12s&sentinel_password_file=$dir/right"
is "$answer" ok 'the right one opens'
HOLDFAST_SENTINEL_PASSWORD='open sesame' client e "$guarded?max_ttl=12s"
is "$answer" ok 'so does the one of the environment'
done_testing
