#!/bin/bash
# Three servers on their worst days, and a fenced counter that goes on through all of them.
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_ensemble e minSessionTimeout=400 maxSessionTimeout=4000

value() {
    local value
    read -r _ value _ <"$dir/counter"
    echo $((10#${value:-0}))
}
moved() { [ "$(value)" -gt "$1" ]; }
counts_on() { # DESCRIPTION
    eventually 40 moved "$(value)"
    ok $? "$1: it counts on"
}
# One leads and two follow: a server that was frozen may think for a while that it still leads.
settled() {
    local i mode modes=
    for i in 1 2 3; do
        mode=$(zk_mode "e$i")
        modes="$modes $mode"
        [ "$mode" != leader ] || l=e$i
    done
    [ "$(echo "$modes" | tr ' ' '\n' | sort | tr '\n' ' ')" = ' follower follower leader ' ]
}
find_leader() {
    eventually 60 settled && return
    echo 'Bail out! the three servers do not find together'
    exit 1
}
others() { echo e1 e2 e3 | tr ' ' '\n' | grep -v "^$1\$"; }

counters_start 4 "zookeeper://$(hosts e1 e2 e3)/faults?tick=200ms" 200 2000
counts_on 'three servers'

find_leader
zk_stop "$l" KILL
counts_on "the leader ($l) is killed"
zk_launch "$l"
zk_ready "$l"

# The session of a stopped client ends behind its back.
kill -STOP "${counter_pids[0]}"
sleep 4
counts_on 'a client is stopped for longer than its session'
kill -CONT "${counter_pids[0]}"

find_leader
frozen=$(others "$l" | head -n 1)
kill -STOP "$(pid "$frozen")"
sleep 3
counts_on "a follower ($frozen) is frozen for longer than the ttl"
kill -CONT "$(pid "$frozen")"

# A command that starts meanwhile may try the frozen one first, and does not give up for that.
find_leader
frozen=$(others "$l" | head -n 1)
kill -STOP "$(pid "$frozen")"
failures=0
for i in $(seq 12); do
    "$hf" --store "zookeeper://$(hosts e1 e2 e3)/start" run -n "job$i" -- true 2>"$dir/err" ||
        failures=$((failures + 1))
done
is "$failures" 0 "a follower ($frozen) is frozen: every job starts: $(cat "$dir/err")"
kill -CONT "$(pid "$frozen")"

find_leader
kill -STOP "$(pid "$l")"
sleep 3
counts_on "the leader ($l) is frozen for longer than the ttl"
kill -CONT "$(pid "$l")"

# No majority: nothing is granted. A hold that was granted before may still write, for its ttl.
find_leader
for name in $(others "$l"); do
    zk_stop "$name" KILL
done
sleep 4
stood=$(value)
sleep 2
is "$(value)" "$stood" 'without a majority nothing is granted'
for name in $(others "$l"); do
    zk_launch "$name"
done
counts_on 'the majority is back'
counters_stop
counters_end 'through all of it'
done_testing
