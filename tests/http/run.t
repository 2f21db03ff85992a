#!/bin/bash
# run.t - holdfast run on a store behind a server: the child is dead before the deadline, whatever becomes of the server.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/serve/http.sh"

behind=file:$dir/store
serve_start --store "$behind"
export HOLDFAST_STORE=http+unix://$sock
holder_of() { "$hf" --store "$behind" status --json "$1" | jq -r '.label // ""'; }
held() { [ -n "$(holder_of "$1")" ]; }
free() { ! held "$1"; }

out=$("$hf" run job -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"' 2>&1)
is "$?" 0 'a job under a lock'
like "$out" 'job [1-9]*' 'knows its token'
out=$("$hf" run job -- sh -c 'ls -l /proc/self/fd' 2>&1)
[[ $out != *socket:* ]]
ok $? 'the job inherits no socket of ours'
"$hf" run -n job -- sleep 60 &
holder=$!
eventually 10 held job
"$hf" run -n job -- true 2>"$dir/err"
is "$?" 75 'a second one is told busy'
like "$(cat "$dir/err")" '*held*by *' 'and by whom'
"$hf" --store "$behind" run -n job -- true 2>"$dir/null"
is "$?" 75 'so is one that goes to the store directly'
kill -TERM $holder
wait $holder
is "$(holder_of job)" '' 'a signal ends it, and the lock is released'
eval "$("$hf" acquire --ttl 20s manual)"
like "${HOLDFAST_TOKEN-}" '[1-9]*' 'acquire for a script'
"$hf" renew --ttl 30s manual
is "$?" 0 'renew'
"$hf" release manual
is "$?" 0 'release'
unset HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_NAME
export HOLDFAST_STORE=http+unix://$sock

# broken at the store
"$hf" run --ttl 3s broken -- sleep 60 2>"$dir/err" &
supervisor=$!
eventually 10 held broken
"$hf" --store "$behind" break --yes --reason 'not wanted' broken --token "$("$hf" --store "$behind" status --json broken | jq -r .token)" \
    >"$dir/null" 2>&1
wait $supervisor
is "$?" 123 'a hold that is broken at the store is lost'
like "$(cat "$dir/err")" '*not wanted*' 'and why is told'

# killed, and back before the deadline
"$hf" run --ttl 6s through -- sleep 4 &
supervisor=$!
eventually 10 held through
server_stop serve KILL
sleep 1
serve_start --store "$behind"
wait $supervisor
is "$?" 0 'a server that is killed and back in time: the job has not noticed'

# frozen for longer than the ttl
beating frozen &
supervisor=$!
beats frozen
sleep 1.5
kill -STOP "${server_pid[serve]}"
stopped=$(date +%s%N)
wait $supervisor
is "$?" 123 'a frozen server: the lock is lost, and run says so'
dead_in_time frozen "$stopped"
kill -CONT "${server_pid[serve]}"
eventually 20 free frozen
ok $? 'the store frees it'

# nobody there
server_stop serve
"$hf" run -n job -- true 2>"$dir/err"
is "$?" 69 'no server: unreachable'
done_testing
