#!/bin/bash
# A hold that is broken, in etcd: what is special is the lease that holds share, and the watch.
# shellcheck disable=SC2317 # functions that eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/breaks.sh"

etcd_start a
proxy_start p a
breaks a p 3000

# The watch tells of it at once, whatever the ttl.
ask h acquire 1 soon 60000 0 kept
t=$(token)
sleep 1 # until it is watched: nothing tells
ask b break soon "$t"
eventually 1 heard h 1
like "$answer" 'ok 3 *' 'a holder with a long ttl hears of it at once'
ask h release 1
for i in $(seq 1 20); do ask h acquire $((20 + i)) "many$i" 60000 0 kept; done
t=$(token)
sleep 1
ask b break many20 "$t"
eventually 1 heard h 40
like "$answer" 'ok 3 *' 'also one of very many'
ask h lost 39
like "$answer" 'ok 0 *' 'and it alone'
ask h close

# A renewal that is refused does not make a detached hold last longer.
ask b acquire 1 detached 4000 0 detached
t=$(token)
ask b owner 1
owner=${answer#ok }
ask b break detached "$t"
like "$answer" 'ok left=[1-9]*detached=1*' 'a detached hold is broken'
end=$((SECONDS + 12))
renewed=0
refused=0
while ask w adopt 1 detached "$owner" "$t" && [[ $answer == ok* ]] && [ $SECONDS -lt $end ]; do
    ask w renew 1 4000
    case $answer in
    ok*) renewed=$((renewed + 1)) ;;
    HF_LOST*'broken by operator'*) refused=$((refused + 1)) ;;
    esac
    ask w leave 1
    sleep 0.3
done
is "$renewed" 0 'and never renewed'
above "$refused" 3 'however often that is tried'
[ $SECONDS -lt $end ]
ok $? 'which does not make it last longer'

# What is left behind: nothing, once the leases have ended.
notices() { ctl a get --prefix $'holdfast/\x1c' --keys-only | grep -ac 'detached\|alive\|idle'; }
eventually 20 eval '[ "$(notices)" -eq 0 ]'
is "$(notices)" 0 'the notices of breaks have ended with the leases of the holds'
done_testing
