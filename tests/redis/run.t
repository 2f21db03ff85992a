#!/bin/bash
# holdfast run on a Redis store: the child is dead before the deadline, whatever the server does.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)

out=$("$hf" run job -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"' 2>&1)
is "$?" 0 'a job under a lock'
like "$out" 'job [1-9]*' 'knows its token'
"$hf" run -n job -- sleep 60 &
holder=$!
eventually 10 eval '[ "$(rcli a exists job)" = 1 ]'
"$hf" run -n job -- true 2>/dev/null
is "$?" 75 'a second one is told busy'
kill -TERM $holder
wait $holder
is "$(rcli a exists job)" 0 'a signal ends it, and the lock is released'

# frozen for longer than the ttl
beating frozen &
supervisor=$!
beats frozen
sleep 1.5
kill -STOP "$(pid a)"
stopped=$(date +%s%N)
wait $supervisor
is "$?" 123 'a frozen server: the lock is lost, and run says so'
dead_in_time frozen "$stopped"
kill -CONT "$(pid a)"
eventually 10 eval '[ "$(rcli a exists frozen)" = 0 ]'
ok $? 'thawed, the server frees it'

# A signal while the store is being opened.
kill -STOP "$(pid a)"
for signal in TERM HUP; do
    "$hf" run job -- touch "$dir/ran" &
    opener=$!
    sleep 0.5
    told=$(date +%s%N)
    kill -"$signal" $opener
    { wait $opener; } 2>/dev/null
    is "$?" $((128 + $(kill -l "$signal"))) "$signal while the server does not answer: we die of it"
    after=$((($(date +%s%N) - told) / 1000000))
    [ "$after" -lt 2500 ]
    ok $? "at once ($after ms)"
done
kill -CONT "$(pid a)"
"$hf" run job -- grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status >"$dir/below"
grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status >"$dir/beside"
is "$(cat "$dir/below")" "$(cat "$dir/beside")" 'the command finds its signals as they were'
[ ! -e "$dir/ran" ]
ok $? 'and it was not run by those'
done_testing
