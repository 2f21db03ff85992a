#!/bin/bash
# Incarnations in a cluster, where slots change hands: with their data, and without.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

opt='?max_ttl=18s'
held='held-there' # on the third master, which has few slots and is going to die
at=$(python3 -c 'import binascii, sys; print(binascii.crc_hqx(sys.argv[1].encode(), 0) % 16384)' $held)
cluster_shares="100-8000 0-99,8001-$((at - 1)),$((at + 3))-16383 $at-$((at + 2))"
[ "$at" -gt 8002 ] || echo "Bail out! choose another name: slot $at"
cluster_start n1 n2 n3 n4
ok $? 'a cluster of three masters'
eventually 20 eval 'rcli n4 cluster replicate "$(rcli n1 cluster myid)" | grep -q OK'
eventually 20 eval 'rcli n4 info replication | grep -q master_link_status:up'
ok $? 'the first has a replica'

client a "$(url n2 "$opt")"
client b "$(url n3 "$opt")"
ask a acquire 1 "$held" 3000 40000
like "$answer" 'ok *' 'the cluster grants, after its quarantine'
ask a release 1
settled() { ask a acquire 2 "$(name_in "$1" "$2")" 1000 0; [[ $answer == ok* ]]; }
eventually 30 settled n1 1
eventually 30 settled n2 1
ok $? 'all of it'
ask a acquire 3 "$(name_in n1 2)" 1000 0
like "$answer" 'ok *' 'at rest a new name is not delayed'
client fresh "$(url n1 "$opt")"
ask fresh acquire 3 "$(name_in n2 2)" 1000 0
like "$answer" 'ok *' 'nor is it for a client that comes now'

# the first master is replaced by its replica, once
redis_stop n1 KILL
rcli n4 cluster failover takeover >/dev/null
eventually 20 eval 'rcli n4 info replication | grep -q role:master'
cluster=(n4 n2 n3)
old=$(name_in n4 1)
eventually 40 eval 'ask a acquire 4 "$old" 1000 10000; [[ $answer == ok* ]]'
ok $? 'a replica was promoted, and grants after its quarantine'
eventually 30 settled n4 3

# its lowest slots move away, one after the other: the promoted one stays open
refused=0
for slot in 100 101 102 103; do
    move_slot $slot n4 n2 || refused=$((refused + 1))
    client "m$slot" "$(url n4 "$opt")"
    ask "m$slot" acquire 1 "$old" 1000 5000
    [[ $answer == ok* ]] || refused=$((refused + 1))
    ask "m$slot" release 1
    ask "m$slot" acquire 2 "$(name_in n4 $((slot - 96)))" 1000 0
    [[ $answer == ok* ]] || refused=$((refused + 1))
    ask "m$slot" close
done
is "$refused" 0 'a promoted master that gives its lowest slots away is not put into quarantine again'

# a slot that comes with its data: what has a record goes on, new names wait
mover=$(name_in n4 9)
slot=$(rcli n2 cluster keyslot "$mover")
ask a acquire 5 "$mover" 1000 0
like "$answer" 'ok *' 'a lock'
ask a release 5
move_slot "$slot" n4 n2
ok $? 'its slot moves'
ask b acquire 5 "$mover" 1000 0
like "$answer" 'ok *' 'moved with its record: granted at once'
ask b release 5
ask a acquire 5 "$mover" 1000 0
like "$answer" 'ok *' 'also to a client that knew it elsewhere'
ask a release 5
ask b acquire 6 "{$mover}new" 1000 0
like "$answer" 'HF_QUARANTINE*taken slots over*' 'a name without a record in that slot waits'
move_slot "$slot" n2 n4
ok $? 'it moves back'
ask b acquire 5 "$mover" 1000 0
like "$answer" 'ok *' 'and is granted at once there too'
ask b release 5

# a long reshard: once the taker has the highest epoch, only what has just come has to wait
move_slot 104 n4 n2
eventually 40 settled n2 20
delayed=0
for slot in 105 106 107 108; do
    move_slot $slot n4 n2
    ask a acquire 8 "$(name_in n2 $((slot - 80)))" 1000 0
    [[ $answer == ok* ]] || delayed=$((delayed + 1))
done
is "$delayed" 0 'new names elsewhere on a server that is taking slots over are not delayed'

# a master dies with what it knew, and its slots are given to the others
eventually 40 settled n2 40
ask a acquire 7 "$held" 18000 0 kept
like "$answer" 'ok *' 'held on the third master'
owner_valid() { ask a left 7; [ "${answer#ok }" -gt 0 ]; }
id3=$(rcli n3 cluster myid)
redis_stop n3 KILL
cluster=(n4 n2)
eventually 20 eval 'rcli n2 cluster nodes | grep "^$id3" | grep -q "master,fail "'
echo yes | redis-cli --cluster fix "127.0.0.1:$(port n2)" --cluster-fix-with-unreachable-masters >"$dir/fix" 2>&1
eventually 20 eval '[ -n "$(holder_of_slot "$held")" ]'
ok $? 'its slots are given to calm masters'
client c "$(url n2 "$opt")"
heard() { ask c acquire 1 "$held" 2000 0; [[ $answer == @(ok|HF_QUARANTINE)* ]]; } # of the new way
eventually 10 heard
early=$answer
still=1
owner_valid && still=0
like "$early" 'HF_QUARANTINE*taken slots over*' 'who has them now does not grant what the dead one may have granted'
ok $still 'the holder was valid all the while'
eventually 10 eval 'ask c acquire 2 "$old" 1000 0; [[ $answer == ok* ]]'
like "$answer" 'ok *' 'locks that have a record there go on'
ask c acquire 1 "$held" 2000 40000
like "$answer" 'ok *' 'the others follow when nobody can hold them any more'
done_testing
