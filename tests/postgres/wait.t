#!/bin/bash
# A wait outlives what passes before its own end: a frozen server, one that is down, that starts, or that
# has no connection left.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a max_connections=12 superuser_reserved_connections=1
client h "$(url a)"
sql a 'CREATE ROLE app LOGIN' 'GRANT USAGE ON SCHEMA holdfast TO app'
app="postgres://app@127.0.0.1:$(port a)/postgres"

# frozen for longer than a request may take
ask h acquire 1 job 60000 0
like "$answer" 'ok *' 'a lock is held'
for c in 1 2; do
    client "w$c" "$(url a)"
    tell "w$c" acquire 1 job 20000 120000
done
"$hf" --store "$(url a)" run -w 120 job -- touch "$dir/ran" 2>"$dir/run.err" &
run=$!
eventually 20 waiting a job 3
ok $? 'three wait'
pg_signal a STOP
sleep 8
for c in 1 2; do
    silent "w$c"
    ok $? "8s of a frozen server do not end a wait ($c)"
done
kill -0 $run 2>/dev/null
ok $? 'nor that of run'
pg_signal a CONT
eventually 30 waiting a job 3
ok $? 'they stand in the queue again, once each'
ask h release 1
case $answer in HF_UN*) ask h release 1 ;; esac
done_with() { # CLIENT : it has the lock, and gives it back
    hear "$1" 60
    like "$answer" 'ok *' "$1 gets the lock"
    ask "$1" release 1
}
# whoever comes first
tell w1 release 1
hear w1 60
like "$answer" 'ok *' 'the first gets the lock'
hear w1 10
is "$answer" ok 'and gives it back'
done_with w2
wait $run
is $? 0 'and run'
[ -e "$dir/ran" ]
ok $? 'has done its job'
eventually 10 is_free a job
ok $? 'nothing of what was asked in vain is left'

# no connection left
gone w1
gone w2
sitters=()
for i in $(seq 12); do
    psql -XAtq -d "$app" -c 'SELECT pg_sleep(60)' >/dev/null 2>&1 &
    sitters+=($!)
done
full() { ! psql -XAtq -d "$app" -c 'SELECT 1' >/dev/null 2>&1; }
eventually 20 full
"$hf" --store "$app" run -n full -- true 2>"$dir/full.err"
is $? 69 'no connection left: unreachable for who does not wait'
like "$(cat "$dir/full.err")" '*the server has no connection left for us; raise max_connections*' 'it is said why'
"$hf" --store "$app" run -w 60 full -- true 2>"$dir/full.err" &
run=$!
sleep 1.5
kill -0 $run 2>/dev/null
ok $? 'who waits goes on waiting'
sql a "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%'" >/dev/null
wait "${sitters[@]}" 2>/dev/null
wait $run
is $? 0 'and has the lock when there is a connection again'

# down, then starting
client w "$(url a)"
ask h acquire 1 again 60000 0
tell w acquire 1 again 20000 60000
eventually 20 waiting a again 1
pg_stop a QUIT
"$hf" --store "$app" run -w 60 other -- true 2>"$dir/down.err" &
run=$!
sleep 4 # longer than a place in the queue lives
silent w
ok $? 'a server that is down does not end a wait'
kill -0 $run 2>/dev/null
ok $? 'nor does it end one that began then'
pg_again a
wait $run
is $? 0 'which gets its lock when the server is up'
ask h release 1
case $answer in HF_UN*) ask h release 1 ;; esac
hear w 60
like "$answer" 'ok *' 'so does the other'
done_testing
