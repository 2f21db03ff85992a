#!/bin/bash
# What `holdfast doctor` makes of a PostgreSQL: each finding on a server that deserves it, and on one that does
# not.
# shellcheck disable=SC2317,SC2034 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/doctor.sh"

pg_fsync=on
pg_start a
pg_fsync=off
sql a 'CREATE ROLE app LOGIN' 'CREATE DATABASE other' 'REVOKE CREATE ON DATABASE postgres FROM PUBLIC' >/dev/null
at=127.0.0.1:$(port a)
owner=postgres://postgres@$at/postgres
app=postgres://app@$at/postgres

# Before its first use: looking makes nothing.
examine "$owner"
is "$rc" 0 'a server that holdfast has not used yet'
is "$(sql a "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'")" 0 'and still has not'
spares postgres.read-only postgres.rights postgres.fsync postgres.pages postgres.async postgres.standby postgres.commit \
    postgres.pooler postgres.plain postgres.max-ttl clock.rate clock.offset latency.too-slow store.closed
fits_schema 'the answer is as its schema says'
examine "$app"
is "$rc" 1 'a role that may not make the schema'
finds postgres.rights
"$hf" --store "$owner" run -n job -- "$hf" fence write "$dir/report" -- echo one
examine "$app" --for correctness
is "$rc" 1 'a role that may not use it'
finds postgres.rights
unchecked postgres.max_ttl_agreed
sql a 'GRANT USAGE ON SCHEMA holdfast TO app' >/dev/null

# With the one right that the manual names.
examine "$app" --fence "$dir/report"
is "$rc" 0 'a healthy server, with the one right that the manual names'
holds '.correctness and [.verdicts[] | select(.level != "advice")] == []' 'and nothing is left unchecked'
is "$(fact postgres.max_ttl_agreed) $(fact postgres.standbys) $(fact postgres.pooler)" '60000 0 no' 'facts'
run_require() { # URL
    answer=$("$hf" --store "$1" run -n --require correctness --fence "$dir/report" job -- true 2>&1)
    rc=$?
}
run_require "$app"
is "$rc" 0 '--require correctness is met'
examine "$app?max_ttl=2s"
is "$rc" 1 'another max_ttl'
finds postgres.max-ttl

# A role that may, and whose transactions read only; a database that is not there.
sql a 'ALTER ROLE app SET default_transaction_read_only = on' >/dev/null
examine "$app"
is "$rc" 1 'a role that reads only takes no lock'
finds postgres.read-only
spares postgres.standby
run_require "$app"
is "$rc" 78 '--require refuses it'
sql a 'ALTER ROLE app RESET default_transaction_read_only' >/dev/null
examine "postgres://app@$at/none"
is "$rc" 64 'a database that does not exist'
holds '.fit == null and (.error | contains("does not exist"))' 'is an error, and no verdict'
fits_schema 'in an answer that is whole'

# Settings.
sql a "ALTER SYSTEM SET fsync = off" "ALTER SYSTEM SET full_page_writes = off" \
    "ALTER SYSTEM SET synchronous_commit = off" >/dev/null
pg_stop a
pg_start a
at=127.0.0.1:$(port a)
app=postgres://app@$at/postgres
examine "$app" --for correctness --fence "$dir/report"
is "$rc" 1 'a server that forgets'
finds postgres.fsync postgres.pages postgres.commit
run_require "$app"
is "$rc" 78 '--require refuses it'
like "$answer" '*fsync*' 'and says why'

# A standby, which nobody waits for, and then somebody does.
pg_standby s a
pg_start s
streams() { [ "$(sql a 'SELECT count(*) FROM pg_stat_replication')" = 1 ]; }
eventually 20 streams
ok $? 'a standby follows'
examine "$app"
finds postgres.async
is "$(fact postgres.standbys)" 1 'an ordinary role sees that there is one'
examine "postgres://app@127.0.0.1:$(port s)/postgres"
is "$rc" 1 'a standby carries no lock'
finds postgres.standby
sql a "ALTER SYSTEM SET synchronous_standby_names = '*'" 'SELECT pg_reload_conf()' >/dev/null
is_sync() { [ "$(sql a 'SHOW synchronous_standby_names')" = '*' ]; }
eventually 10 is_sync
examine "$app"
spares postgres.async
sql a "ALTER SYSTEM RESET synchronous_standby_names" 'SELECT pg_reload_conf()' >/dev/null
pg_stop s

# A network without TLS.
address=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' 2>/dev/null)
if [ -n "$address" ]; then
    echo "host all all $address/32 trust" >>"$dir/pg/a/pg_hba.conf"
    pg_stop a
    pg_start a "listen_addresses=127.0.0.1,$address"
    app=postgres://app@127.0.0.1:$(port a)/postgres
    examine "postgres://app@$address:$(port a)/postgres"
    finds postgres.plain
fi

# Something in between.
if command -v pgbouncer >/dev/null; then
    pg_bouncer b a
    examine "postgres://postgres@127.0.0.1:$(port b)/postgres"
    finds postgres.pooler
fi
proxy_start p a
for mode in cut 'drop fsync' 'drop clock_timestamp' 'chaos 900'; do
    proxy p mode "$mode"
    examine "postgres://app@127.0.0.1:$(port p)/postgres?sslmode=disable&gssencmode=disable"
    holds '.fit != true or ([.verdicts[] | select(.level == "unchecked")] != [])' \
        "answers that do not come ($mode, exit $rc): not fit, or not all of it was checked"
    fits_schema 'in an answer that is whole'
done
pg_signal a STOP
begin=$SECONDS
examine "$app"
is "$rc" 69 'a server that hangs cannot be reached'
[ $((SECONDS - begin)) -le 8 ]
ok $? 'which takes a few seconds'
pg_signal a CONT

done_testing
