#!/bin/bash
# Three servers: the leader is killed, the majority is lost and comes back, members are frozen. All
# the while several count under a lock, with a fence.
# run: once
# shellcheck disable=SC2034,SC2154,SC2317 # eventually uses and sets them
set -u
. "$(dirname "$0")/lib.sh"

count() { awk '{ value = $2 } END { print value + 0 }' "$dir/counter"; }

cluster_start a b c
all=$(url a b c)
client h "$all"
ask h acquire 1 mine 20000 0 kept
like "$answer" 'ok *' 'a lock in a cluster'
mine=$(token)

counters_start 4 "$all" 60 3000 kept
eventually 20 eval '[ "$(count)" -gt 3 ]'
ok $? 'they count'
eventually 20 eval 'first=$(leader a b c)'
like "$first" '[abc]' "the leader is $first"
etcd_stop "$first" KILL
count_now=$(count)
eventually 20 eval '[ "$(count)" -gt $((count_now + 3)) ]'
ok $? 'counting goes on without the leader'
etcd_again "$first"
others=$(printf '%s\n' a b c | grep -v "$first")
# shellcheck disable=SC2086 # two names
set -- $others
etcd_stop "$1" KILL
etcd_stop "$2" KILL
sleep 3
client l
tell l open "$(url "$first")"
hear l
ask l acquire 1 other 5000 0
like "$answer" 'HF_UN*' 'without a majority nothing is granted'
etcd_run "$1"
etcd_run "$2"
eventually 30 serves "$1"
eventually 30 eval 'ask l acquire 1 other 5000 0; [[ $answer == ok* ]]'
ok $? 'with it, locks are'
eventually 20 eval 'frozen=$(leader a b c)'
kill -STOP "$(pid "$frozen")"
sleep 4
kill -CONT "$(pid "$frozen")"
counters_stop
counters_end 'leader killed, majority lost, leader frozen'

ask h renew 1 20000
answer_now=$answer
ask h lost 1
case $answer_now in
ok) is "$answer" 'ok 0 not lost' 'the lock of before is still held' ;;
*) like "$answer_now" 'HF_LOST*' 'the lock of before was lost, and its holder told' ;;
esac
ask h release 1
ask h acquire 1 mine 20000 0 kept
above "$(token)" "$mine" 'tokens go on above the old'

# one server of another cluster among the endpoints
etcd_start z
client m "$(url a z)"
for i in 1 2 3; do
    ask m acquire 1 "m$i" 5000 0
    etcd_stop a KILL
    [[ $answer == HF_CORRUPT* ]] && break
done
like "$answer" 'HF_CORRUPT*different clusters*' 'servers of different clusters are noticed'
done_testing
