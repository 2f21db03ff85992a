#!/bin/bash
# A server that answers nothing while the others are well: the session moves to another one, in time for every
# lease and for every job.
# run: first
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_ensemble e tickTime=2000
followers=()
for i in 1 2 3; do
    [ "$(zk_mode "e$i")" != follower ] || followers+=("e$i")
done
is "${#followers[@]}" 2 'three servers, two of them follow'
url=zookeeper://$(hosts e1 e2 e3)/silent
jobs=6

# A session begins at any host: among so many jobs some are at the one that freezes.
declare -a job
for ((i = 0; i < jobs; i++)); do
    "$hf" --store "$url" run "job$i" -- sh -c "
        touch '$dir/runs.$i'; until [ -e '$dir/enough' ]; do sleep 0.2; done" 2>"$dir/err.$i" &
    job[i]=$!
done
all_run() { [ "$(find "$dir" -name 'runs.*' | wc -l)" -eq "$jobs" ]; }
eventually 60 all_run
ok $? 'six jobs run, with the default ttl'
for i in 1 2 3 4; do
    client "short$i" "$url"
    ask "short$i" acquire 1 "short$i" 5000 0 kept
done

connections() { ss -Htn state established "dport = :$(port "$1")" | wc -l; }
frozen=${followers[0]}
[ "$(connections "$frozen")" -ge "$(connections "${followers[1]}")" ] || frozen=${followers[1]}
above "$(connections "$frozen")" 0 "some of them at the follower $frozen"
kill -STOP "$(pid "$frozen")"
sleep 33
for i in 1 2 3 4; do
    ask "short$i" left 1
    above "${answer#ok }" 0 'a lease of 5 s outlives the freeze'
done
: >"$dir/enough"
for ((i = 0; i < jobs; i++)); do
    wait "${job[i]}"
    is $? 0 "job $i ends by itself: $(cat "$dir/err.$i")"
done
kill -CONT "$(pid "$frozen")"
for i in 1 2 3 4; do
    ask "short$i" release 1
    is "$answer" ok 'a lease was held to the end'
done
done_testing
