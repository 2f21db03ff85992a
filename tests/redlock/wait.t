#!/bin/bash
# wait.t - a wait outlives what passes: no majority for a while, nodes that restart and may not vote.
# run: once
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

nodes 5 4000
url=$(redlock '?max_ttl=4s')
client h "$url"
client w "$url"
ask h acquire 1 x 4000 0 kept
like "$answer" 'ok *' 'it is held'
tell w acquire 1 x 4000 60000
kill -STOP "$(pid n1)" "$(pid n2)" "$(pid n3)"
"$hf" --store "$url" run -w 60s --ttl 4s y -- true 2>"$dir/run.err" &
run=$!
sleep 9 # longer than the ttl, and than a single request may take
silent w
ok $? 'a waiter waits on, without a majority'
kill -CONT "$(pid n1)" "$(pid n2)" "$(pid n3)"
hear w 60
like "$answer" 'ok *' 'and is granted the lock when there is one again'
wait "$run"
is "$?" 0 'so does one that began without a majority'
sed 's/^/#   /' "$dir/run.err"
ask w release 1

# All nodes are new: nobody votes until their quarantine is over.
ask h acquire 2 z 4000 0 kept
tell w acquire 1 z 4000 60000
for n in n1 n2 n3 n4 n5; do
    redis_stop "$n" KILL
    redis_again "$n"
done
hear w 60
like "$answer" 'ok *' 'a waiter outlives the quarantine of all nodes'
ask w release 1
is "$answer" ok 'and holds the lock'
done_testing
