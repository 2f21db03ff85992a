#!/bin/bash
# The store on a single server: taking, showing, the schema, what a URL may say.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a

# looking makes no schema
answer=$("$hf" --store "$(url a)" list --json 2>&1 && "$hf" --store "$(url a)" status job 2>&1)
is "$?" 0 'a server without a schema can be looked at'
like "$answer" '\[\]*job: free*' 'it has no locks'
is "$(sql a "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'")" 0 'looking makes no schema'

# the schema is made once, by whoever comes first
for i in 1 2 3 4 5 6; do client "c$i"; done
for i in 1 2 3 4 5 6; do tell "c$i" open "$(url a)"; done
opened=0
for i in 1 2 3 4 5 6; do
    hear "c$i"
    [ "$answer" != ok ] || opened=$((opened + 1))
done
is "$opened" 6 'six clients that come at once all open a server without a schema'
is "$(sql a 'SELECT version FROM holdfast.version')" 12 'its version is on record'

# taking, showing, giving back
ask c1 acquire 1 jobs/nightly 20000 0
like "$answer" 'ok *' 'taken, without any quarantine on a fresh server'
first=$(token)
now=$(date +%s%N)
[ $((now / 1000 - first)) -lt 60000000 ]
ok $? 'the token is the clock of the database in microseconds'
ask c2 acquire 1 jobs/nightly 20000 0
like "$answer" 'HF_BUSY*"jobs/nightly" in store postgres://*held by *tool_client (token '"$first"')*' \
    'another is told by whom it is held'
ask c2 status jobs/nightly
like "$answer" "ok \[jobs/nightly held=1 token=$first label=*tool_client left=1* waiters=0 foreign=0 detached=0\]" \
    'status shows it'
ask c2 list jobs/
like "$answer" 'ok \[jobs/nightly *' 'list finds it by its prefix'
ask c2 list other/
is "$answer" ok 'and not by another'
ask c1 renew 1 30000
is "$answer" ok 'renewed with another ttl'
ask c1 release 1
is "$answer" ok 'released'
is "$(sql a "SELECT owner IS NULL, token = $first FROM holdfast.lock WHERE name = 'jobs/nightly'")" 't|t' \
    'its row stays, with the token'
ask c1 pairs 50 jobs/nightly
above "$(token)" "$first" 'tokens rise, hold after hold'

# a forked child that closes the store does not end the parent's session
sessions() { sql a "SELECT string_agg(pid::text, ',' ORDER BY pid) FROM pg_stat_activity WHERE application_name = 'holdfast'"; }
before=$(sessions)
ask c1 fork
ask c1 pairs 1 forked
like "$answer" 'ok *' 'a child was forked and closed the store'
is "$(sessions)" "$before" 'on the session the parent goes on with'

# the clock of the database went back: the token does not
sql a "UPDATE holdfast.lock SET token = 4000000000000000000 WHERE name = 'jobs/nightly'"
ask c1 acquire 1 jobs/nightly 20000 0
is "$(token)" 4000000000000000001 'a token above the clock is counted on'
ask c1 release 1
sql a "UPDATE holdfast.lock SET token = 9223372036854775807 WHERE name = 'jobs/nightly'"
ask c1 acquire 1 jobs/nightly 20000 0
like "$answer" 'HF_CORRUPT*the highest possible*' 'one at the very end is refused'

# what was lost, and why
ask c1 acquire 1 gone 20000 0
sql a "DELETE FROM holdfast.lock WHERE name = 'gone'"
ask c1 renew 1 20000
like "$answer" 'HF_LOST*no longer knows the lock*' 'a lock that vanished is lost, and not made again'
is "$(sql a "SELECT count(*) FROM holdfast.lock WHERE name = 'gone'")" 0 'really not'

# a detached lease outlives its process
eval "$("$hf" --store "$(url a)" acquire --ttl 20s detached)"
ask c1 status detached
like "$answer" '*held=1 *detached=1*' 'a detached lease belongs to no process'
"$hf" --store "$(url a)" release >"$dir/out" 2>&1
is "$?" 0 'and is released by its owner'

# max_ttl
ask c1 acquire 1 long 70000 0
like "$answer" 'HF_INVALID*a ttl of 1m10s is above the store*s max_ttl of 1m*' 'a ttl above max_ttl'
client odd "$(url a '?max_ttl=5m')"
like "$answer" 'HF_INVALID*agreed on max_ttl=60s, and you ask for max_ttl=300s*' 'all clients need the same max_ttl'

# what a URL may say
for bad in '?max_ttl=nonsense' '?max_ttl=2d' '?listen=maybe' '?sslmode=nonsense' '?nonsense=1'; do
    client u
    ask u open "$(url a "$bad")"
    like "$answer" 'HF_INVALID*' "refused: $bad"
    gone u
done
client u
ask u open "postgres://me:se%zzcret@127.0.0.1:$(port a)/postgres"
like "$answer" 'HF_INVALID*not a URI that libpq understands*' 'a malformed URI'
[[ $answer != *cret* ]]
ok $? 'is not quoted with its password'
ask u open "$(url a '?application_name=mine&max_ttl=60s&connect_timeout=5')"
is "$answer" ok 'parameters of libpq and ours together'
is "$(sql a "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mine'")" 1 'reach libpq'
ask u open "postgresql://postgres@127.0.0.1:$(port a)/postgres"
is "$answer" ok 'postgresql:// is the same'
ask u open "postgres://postgres@127.0.0.1:$(port a)/nowhere"
like "$answer" 'HF_INVALID*nowhere*' 'a database that does not exist'

# migration: an old schema is brought up to date, with what is in it
sql a 'CREATE DATABASE old'
database=old
sed '' "$root/src/stores/postgres/scripts/001_tables.sql" | psql -XAtq -h 127.0.0.1 -p "$(port a)" \
    -U postgres -d old
sql a 'UPDATE holdfast.version SET version = 2' \
    'CREATE FUNCTION holdfast.meet(p_max_ttl_ms bigint, OUT version integer, OUT verdict text,
        OUT id text, OUT left_ms bigint, OUT agreed_ms bigint) LANGUAGE sql AS $$
        SELECT 2, $s$open$s$, $s$1/1$s$, 0::bigint, 0::bigint $$' \
    'CREATE FUNCTION holdfast.list(bytea, boolean, bytea, integer) RETURNS TABLE (name text)
        LANGUAGE sql AS $$ SELECT NULL::text $$' \
    "INSERT INTO holdfast.lock VALUES ('kept', 4000000000000000000, NULL, false, false, false, 1, now(), now(), '')"
client m "$(url a)"
is "$answer" ok 'a schema of version 2 is migrated'
is "$(sql a 'SELECT version FROM holdfast.version')" 12 'to ours'
ask m acquire 1 kept 20000 0
is "$(token)" 4000000000000000001 'and its tokens go on'
sql a 'UPDATE holdfast.version SET version = 5' 'DROP FUNCTION holdfast.quarantine' 'DROP TABLE holdfast.record' \
    'CREATE OR REPLACE FUNCTION holdfast.grants(p_id text, p_ttl_ms integer) RETURNS boolean
        LANGUAGE sql AS $$ SELECT false $$'
client five "$(url a)"
ask five acquire 1 five 20000 0
like "$answer" 'ok *' 'a schema of version 5 gets the functions of the later ones'
sql a 'UPDATE holdfast.version SET version = 13'
client n "$(url a)"
like "$answer" 'HF_UNSUPPORTED*version 13*upgrade holdfast*' 'a schema of a newer client is refused'
ask m release 1
is "$answer" ok 'who is in already may still release'
done_testing
