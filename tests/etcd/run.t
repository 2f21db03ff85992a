#!/bin/bash
# holdfast run and the other commands on an etcd store: the child is dead before the deadline,
# whatever the server does.
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)

out=$("$hf" trap 2>&1)
is $? 0 'the trap springs here without a fence, and not with one'
like "$out" '*REFUSED*is stale*' 'which refuses the one that came too late'

out=$("$hf" run job -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"' 2>&1)
is "$?" 0 'a job under a lock'
like "$out" 'job [1-9]*' 'knows its token'
out=$("$hf" run job -- sh -c 'ls -l /proc/self/fd' 2>&1)
[[ $out != *socket:* ]]
ok $? 'the job inherits no socket of ours'
"$hf" run -n job -- sleep 60 &
holder=$!
eventually 10 eval '[ "$(keys a)" = 1 ]'
"$hf" run -n job -- true 2>"$dir/err"
is "$?" 75 'a second one is told busy'
like "$(cat "$dir/err")" '*held by *' 'and by whom'
like "$("$hf" list --json)" '*"job"*' 'list has it'
kill -TERM $holder
wait $holder
is "$(keys a)" 0 'a signal ends it, and the lock is released'
eval "$("$hf" acquire --ttl 20s manual)"
like "${HOLDFAST_TOKEN-}" '[1-9]*' 'acquire for a script'
"$hf" renew --ttl 30s manual
is "$?" 0 'renew'
"$hf" release manual
is "$?" 0 'release'
unset HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_NAME
HOLDFAST_STORE=$(url a)

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
eventually 20 eval '[ "$(keys a)" = 0 ]'
ok $? 'thawed, the server frees it'

# the lease is revoked behind our back
beating revoked &
supervisor=$!
beats revoked
ctl a lease list | sed 1d | while read -r id; do ctl a lease revoke "$id" >/dev/null; done
wait $supervisor
is "$?" 123 'a revoked lease: the lock is lost, and run says so'

# the lease expires behind our back while we are stopped
beating stopped &
supervisor=$!
beats stopped
kill -STOP $supervisor
stopped=$(date +%s%N)
eventually 20 eval '[ "$(keys a)" = 0 ]'
ok $? 'a stopped supervisor: etcd ends its lease'
dead_in_time stopped "$stopped"
"$hf" run -n stopped -- true
is "$?" 0 'another may have it'
kill -CONT $supervisor
wait $supervisor
is "$?" 123 'woken, it says that the lock was lost'
done_testing
