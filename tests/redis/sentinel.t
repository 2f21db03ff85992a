#!/bin/bash
# Three real sentinels, a master and a replica.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start m
redis_start r --replicaof 127.0.0.1 "$(port m)" --repl-diskless-sync-delay 0
eventually 20 eval 'rcli r info replication | grep -q master_link_status:up'
hosts=
for s in 1 2 3; do
    server_port[s$s]=$(free_port)
    mkdir -p "$dir/s$s"
    cat >"$dir/s$s/conf" <<EOT
port ${server_port[s$s]}
bind 127.0.0.1
dir $dir/s$s
logfile $dir/s$s/log
sentinel monitor mymaster 127.0.0.1 $(port m) 2
sentinel down-after-milliseconds mymaster 1500
sentinel failover-timeout mymaster 10000
EOT
    redis-server "$dir/s$s/conf" --sentinel >/dev/null 2>&1 &
    server_pid[s$s]=$!
    hosts=$hosts${hosts:+,}127.0.0.1:${server_port[s$s]}
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

ask c acquire 1 held 5000 0
ask c acquire 3 kept 12000 0 kept
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
ask c acquire 2 y 4000 20000
like "$answer" 'ok *' 'so does the other'
done_testing
