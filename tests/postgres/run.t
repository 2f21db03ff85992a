#!/bin/bash
# holdfast run on a PostgreSQL store: the child is dead before the deadline, whatever the server does.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)

out=$("$hf" trap 2>&1)
is $? 0 'the trap springs here without a fence, and not with one'
like "$out" '*REFUSED*is stale*' 'which refuses the one that came too late'

out=$("$hf" run job -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"' 2>&1)
is "$?" 0 'a job under a lock'
like "$out" 'job [1-9]*' 'knows its token'
"$hf" run -n job -- sleep 60 &
holder=$!
held() { ! is_free a "$1"; }
eventually 10 held job
"$hf" run -n job -- true 2>/dev/null
is "$?" 75 'a second one is told busy'
"$hf" status job >"$dir/out" 2>&1
grep -q sleep "$dir/out"
ok $? 'status shows the holder'
"$hf" run -w 30s job -- echo next >"$dir/next" 2>&1 &
waiter=$!
eventually 10 waiting a job 1
connections() { sql a "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'"; }
two_connections() { [ "$(connections)" = 2 ]; } # the server may not have ended that of status yet
eventually 10 two_connections
is "$(connections)" 2 'who holds and who waits have a connection each'
kill -TERM $holder
wait $holder
wait $waiter
is "$?" 0 'a signal ends the holder, and the next one has its turn'
is_free a job
ok $? 'and the lock is free in the end'

# frozen for longer than the ttl
beating frozen &
supervisor=$!
beats frozen
sleep 1.5
pg_signal a STOP
stopped=$(date +%s%N)
wait $supervisor
is "$?" 123 'a frozen server: the lock is lost, and run says so'
dead_in_time frozen "$stopped"
pg_signal a CONT

# crashed for good, too
beating crashed &
supervisor=$!
beats crashed
pg_stop a QUIT
crashed=$(date +%s%N)
wait $supervisor
is "$?" 123 'a crashed server: the lock is lost'
dead_in_time crashed "$crashed"
pg_again a
unset HOLDFAST_STORE

# expired behind the back of a client that is stopped
client c "$(url a)"
client d "$(url a)"
ask c acquire 1 behind 1500 0 kept
first=$(token)
kill -STOP "${client_pid[c]}"
ask d acquire 1 behind 20000 20000
above "$(token)" "$first" 'the lock of a stopped client expires, and goes to another'
kill -CONT "${client_pid[c]}"
lost() {
    ask c lost 1
    [ "${answer#ok 0 }" = "$answer" ]
}
eventually 10 lost
ok $? 'who was stopped learns that it is lost'
ask c release 1
like "$answer" 'HF_LOST*' 'and its release too'
ask d release 1
is "$answer" ok 'the other is not disturbed'
done_testing
