#!/bin/bash
# Behind PgBouncer in transaction mode: noticed, nothing is left in a session, waiting polls.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

command -v pgbouncer >/dev/null || skip_all 'pgbouncer is not installed'

pg_start a 'max_connections=50'
pg_bouncer b a
ok $? 'PgBouncer is up'

conforms "$(url b)" 'the conformance suite passes behind it'

HOLDFAST_TRACE=1 client w "$(url b)"
client h "$(url b)"
ask h acquire 1 x 20000 0
first=$(token)
tell w acquire 1 x 20000 20000
eventually 5 waiting a x 1
ok $? 'a waiter queues'
eventually 5 grep -q 'a pooler is in between' "$dir/client.w.err"
ok $? 'the pooler is noticed'
is "$(sql a "SELECT channel FROM holdfast.waiter WHERE lock = 'x'")" '' 'so that it names no channel'
ask h release 1
hear w
like "$answer" 'ok *' 'and it gets the lock by looking every second'
above "$(token)" "$first" 'with a higher token'
ask w release 1
ask h pairs 30 y
like "$answer" 'ok *' 'many pairs, on whatever session the pooler gives'
is "$(sql a 'SELECT count(*) FROM pg_prepared_statements')" 0 'ours has no prepared statements'
sql b "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'holdfast%'" \
    'SELECT count(*) FROM pg_listening_channels()' >"$dir/left"
is "$(tr '\n' ' ' <"$dir/left")" '0 0 ' 'and neither statements nor channels are left in the sessions of the pool'
is "$(sql b 'SHOW synchronous_commit')" on 'nor settings'

# a direct way beside the pooler
direct=$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$(url a)")
client d "$(url b "?listen=$direct")"
is "$answer" ok 'listen=URL names the direct way'
ask h acquire 1 x 20000 0
tell d acquire 1 x 20000 20000
eventually 5 says 1 a "SELECT count(*) FROM holdfast.waiter WHERE channel <> ''"
ok $? 'and the waiter listens there'
ask h release 1
hear d
like "$answer" 'ok *' 'it is woken'
ask d release 1

# the pooler goes away
kill -STOP "${client_pid[b]}"
ask h acquire 1 x 20000 0
like "$answer" 'HF_UNKNOWN*' 'a frozen pooler: unknown'
kill -CONT "${client_pid[b]}"
eventually 10 is_free a x
ok $? 'and what it did when it thawed is taken back'
done_testing
