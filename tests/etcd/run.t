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

beat() { # a child that ignores TERM and says that it is alive
    exec "$hf" run --ttl 4s --grace 1s "$1" -- sh -c \
        'trap "" TERM; while :; do date +%s%N >"$1.new"; mv "$1.new" "$1"; sleep 0.05; done' - \
        "$dir/alive.$1" 2>"$dir/run.err"
}

# frozen for longer than the ttl
beat frozen &
supervisor=$!
eventually 10 test -s "$dir/alive.frozen"
sleep 1.5
kill -STOP "$(pid a)"
stopped=$(date +%s%N)
wait $supervisor
is "$?" 123 'a frozen server: the lock is lost, and run says so'
last=$(cat "$dir/alive.frozen")
[ $(((last - stopped) / 1000000)) -lt 4000 ]
ok $? "the child was dead before the deadline ($(((last - stopped) / 1000000)) ms after the freeze)"
kill -CONT "$(pid a)"
eventually 20 eval '[ "$(keys a)" = 0 ]'
ok $? 'thawed, the server frees it'

# the lease is revoked behind our back
beat revoked &
supervisor=$!
eventually 10 test -s "$dir/alive.revoked"
ctl a lease list | sed 1d | while read -r id; do ctl a lease revoke "$id" >/dev/null; done
wait $supervisor
is "$?" 123 'a revoked lease: the lock is lost, and run says so'

# the lease expires behind our back while we are stopped
beat stopped &
supervisor=$!
eventually 10 test -s "$dir/alive.stopped"
kill -STOP $supervisor
stopped=$(date +%s%N)
eventually 20 eval '[ "$(keys a)" = 0 ]'
ok $? 'a stopped supervisor: etcd ends its lease'
last=$(cat "$dir/alive.stopped")
[ $(((last - stopped) / 1000000)) -lt 4000 ]
ok $? "the child was dead before that ($(((last - stopped) / 1000000)) ms after the stop)"
"$hf" run -n stopped -- true
is "$?" 0 'another may have it'
kill -CONT $supervisor
wait $supervisor
is "$?" 123 'woken, it says that the lock was lost'
done_testing
