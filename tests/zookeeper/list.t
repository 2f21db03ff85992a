#!/bin/bash
# Listings: what may not be read keeps nothing back, and a server that lags behind shows what the others know.
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_ensemble e minSessionTimeout=400 maxSessionTimeout=40000
for i in 1 2 3; do
    [ "$(zk_mode "e$i")" = leader ] && leader=e$i
    [ "$(zk_mode "e$i")" = follower ] && follower=e$i
done
client holder "zookeeper://$(hosts "$leader")?tick=200ms"
client lister "zookeeper://$(hosts "$follower")?tick=200ms"

for i in 1 2 3; do
    ask holder acquire $i "lock$i" 30000 0 kept
done
kazoo "$leader" "
k.set_acls('/holdfast/lock2', [make_acl('world', 'anyone', write=True, create=True, delete=True, admin=True)])
k.set_acls('/holdfast/lock3/' + k.get_children('/holdfast/lock3')[0],
    [make_acl('world', 'anyone', write=True, delete=True, admin=True)])"
ask lister list lock
like "$answer" '*\[lock1 held=1 *' 'a lock that cannot be read keeps no other one back'
like "$answer" '*HF_DENIED*lock2*' 'and is named'
like "$answer" '*\[lock3 held=1 token=0 label= *' 'a holder that cannot be read is shown as one'
ask lister status lock2
like "$answer" '*HF_DENIED*' 'asked for by name, it is denied'

# A follower is stopped, something happens at the others, and it is asked the moment it goes on.
missed=0
seen=0
for i in $(seq 11 30); do
    kill -STOP "$(pid "$follower")"
    ask holder acquire "$i" "late$i" 30000 0 kept
    tell lister status "late$i"
    sleep 0.1
    kill -CONT "$(pid "$follower")"
    hear lister
    case $answer in
    *"late$i held=1"*) seen=$((seen + 1)) ;;
    HF_UN*) echo "# $answer" ;; # a busy machine was too slow to answer: that is no listing
    *) missed=$((missed + 1)) ;;
    esac
done
is "$missed" 0 'a listing misses nothing that was there when it was asked for'
above "$seen" 4 'and was asked often enough'
done_testing
