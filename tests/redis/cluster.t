#!/bin/bash
# A real cluster of three masters and a replica.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

cluster_start n1 n2 n3 n4
ok $? 'three masters and a fourth server are a cluster'
id1=$(rcli n1 cluster myid)
eventually 20 eval 'rcli n4 cluster replicate "$id1" | grep -q OK'
eventually 20 eval 'rcli n4 info replication | grep -q master_link_status:up'
ok $? 'the fourth is a replica of the first'

opt='?max_ttl=5s'
client c "$(url n1 "$opt")"
is "$answer" ok 'a client that knows one of them'
client d "$(url n3 "$opt")"
is "$answer" ok 'another that knows another'
names='alpha beta gamma delta epsilon zeta'
for name in $names; do
    ask c acquire 1 "$name" 4000 30000
    like "$answer" 'ok *' "$name is taken"
    ask d acquire 1 "$name" 4000 0
    like "$answer" 'HF_BUSY*' 'and held against the other'
    ask c release 1
done
spread=0
for n in 1 2 3; do
    [ "$(rcli "n$n" dbsize)" -gt 1 ] && spread=$((spread + 1))
done
is "$spread" 3 'the locks are spread over all three'

ask c acquire 1 queue 4000 0
tell d acquire 1 queue 4000 20000
at=$(holder_of_slot queue)
eventually 5 eval '[ "$(rcli $at zcard "holdfast:{queue}:q")" = 1 ]'
ask c release 1
hear d
like "$answer" 'ok *' 'a hand-over in the cluster'
ask d release 1
for name in $names '{tag}x' 'x{tag}'; do
    ask c acquire 1 "$name" 4000 30000
    ask c put 1 '{key}' "of-$name"
    like "$answer" 'ok *' "a record of $name"
    ask d get "$name" '{key}'
    like "$answer" "ok \[{key}=of-$name *" 'is read through another server'
    ask c release 1
done
for name in $names '{tag}x' 'x{tag}'; do
    ask c acquire 1 "$name" 4000 30000
    ask d break "$name" "$(token)"
    like "$answer" 'ok left=*' "the hold of $name is broken through another server"
    ask c renew 1 4000
    like "$answer" 'HF_LOST*was broken by breaker: a test' 'and its holder hears by whom'
    ask c release 1
    ask d acquire 1 "$name" 4000 0
    like "$answer" 'ok *' 'its release frees it'
    ask d release 1
done
for i in 1 2 3; do ask c acquire "$i" "list$i" 4000 0; done
ask d list list
is "$(grep -o 'list[123] held=1' <<<"$answer" | sort | tr -d '\n')" 'list1 held=1list2 held=1list3 held=1' 'list asks all of them'

# one of them stops to answer: what it knows is missing, and that is said
for i in 1 2 3; do
    at=$(holder_of_slot "list$i")
    [ "$at" = n1 ] || break # that one has a replica, which would take over
done
kill -STOP "$(pid "$at")"
ask d acquire 9 "list$i" 4000 0
like "$answer" 'HF_UNKNOWN*' 'a master that does not answer'
ask d list list
like "$answer" '*HF_UNREACHABLE*' 'nor does it to a listing, which is not complete then'
kill -CONT "$(pid "$at")"
for i in 1 2 3; do
    ask c release "$i"
    ask c acquire "$i" "list$i" 4000 20000
done
ask d list list
is "$(grep -o 'list[123] held=1' <<<"$answer" | sort | tr -d '\n')" 'list1 held=1list2 held=1list3 held=1' 'later it is again'
for i in 1 2 3; do ask c release "$i"; done

# a slot moves
slot=$(rcli n1 cluster keyslot mover)
from=$(holder_of_slot mover)
to=n2
[ "$from" != n2 ] || to=n3
ask c acquire 4 mover 5000 0 kept
ask c put 4 k value
rcli $to cluster setslot "$slot" importing "$(rcli "$from" cluster myid)" >/dev/null
rcli "$from" cluster setslot "$slot" migrating "$(rcli $to cluster myid)" >/dev/null
rcli "$from" migrate 127.0.0.1 "$(port $to)" 'holdfast:{mover}:r' 0 5000 >/dev/null
ask d get mover k
like "$answer" 'ok \[k=value *' 'ASK: a record that has moved before its lock is found'
ask d records mover -
like "$answer" 'ok \[k=value *' 'and listed'
tell c put 4 k next
silent c
ok $? 'to write it has to wait'
move() { rcli "$from" cluster getkeysinslot "$slot" 100 | while read -r key; do
    rcli "$from" migrate 127.0.0.1 "$(port $to)" "$key" 0 5000 >/dev/null
done; }
move
hear c
like "$answer" 'ok *' 'until the lock is there, too'
ask c renew 4 5000
is "$answer" ok 'ASK: renewed while the slot is on the move'
ask d get mover k
like "$answer" 'ok \[k=next *' 'and what was written last is on record'
ask d acquire 4 mover 5000 0
like "$answer" 'HF_BUSY*' 'nobody else takes it meanwhile'
for n in 1 2 3; do rcli "n$n" cluster setslot "$slot" node "$(rcli $to cluster myid)" >/dev/null; done
ask c renew 4 5000
is "$answer" ok 'MOVED: renewed at its new place'
ask c release 4
is "$answer" ok 'and released there'
ask d acquire 4 mover 4000 20000
like "$answer" 'ok *' 'and taken by the next'
ask d release 4

# a master dies, its replica is promoted before it could know
victim=
for name in $names; do [ "$(holder_of_slot "$name")" = n1 ] && victim=$name; done
rcli n1 config set repl-timeout 5 >/dev/null
rcli n4 debug sleep 0 >/dev/null
ask c acquire 5 "$victim" 4000 20000
t=$(token)
above "$t" 0 "$victim lives on the first"
redis_stop n1 KILL
rcli n4 cluster failover takeover >/dev/null
eventually 20 eval 'rcli n4 info replication | grep -q role:master'
ask d acquire 5 "$victim" 4000 0
like "$answer" '@(HF_QUARANTINE|HF_UNREACHABLE|HF_UNKNOWN)*' 'right after the failover it is not granted'
eventually 25 eval 'ask d acquire 5 "$victim" 4000 10000; [[ $answer == ok* ]]'
ok $? 'later it is'
above "$(token)" "$t" 'with a larger token'
done_testing
