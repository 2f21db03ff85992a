#!/bin/bash
# Records: holders that cannot write them any more, writes that come late, the schema's upgrade, and rights.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/records.sh
. "$root/tests/support/records.sh"

pg_start a
proxy_start p a
through="postgres://postgres@127.0.0.1:$(port p)/postgres"
client b "$(url a)"
client a "$through"

# one round trip
ask a acquire 1 trips 20000 0
ask a put 1 k first
proxy p trips
ask a put 1 k second
is "$answer" ok 'a put'
proxy p trips
is "$proxied" 1 'is one round trip'
ask a get trips k
proxy p trips
ask a get trips k
like "$answer" 'ok \[k=second token=* number=2 until=0\] now=1*' 'a get tells the record and the clock'
proxy p trips
is "$proxied" 1 'and is one as well'
ask a release 1

# writes that come too late
end_hold() { sql a "UPDATE holdfast.lock SET expires = clock_timestamp() WHERE name = '$1'"; }
straight=$(url a)
overtaken_by_another hostage
overtaken_by_the_end hostage
overtaken_by_itself running
ended_unknown end_hold
stopped_with_its_keeper

# in_transaction SQL : a session that has executed it and stays in its transaction; committed ends it
in_transaction() {
    mkfifo "$dir/session"
    psql -XAtq -h 127.0.0.1 -p "$(port a)" -U postgres <"$dir/session" >"$dir/session.out" 2>&1 &
    session_pid=$!
    client_pid[session]=$session_pid
    exec {session}>"$dir/session"
    rm "$dir/session"
    echo "BEGIN; $1; SELECT 'there';" >&"$session"
    eventually 10 grep -q there "$dir/session.out"
}
committed() {
    printf 'COMMIT;\n\\q\n' >&"$session"
    exec {session}>&-
    wait "$session_pid"
    unset "client_pid[session]"
}
# put_in_sql LOCK OWNER TOKEN : what a client sends, without its own view of how long the hold lasts
put_in_sql() {
    sql a "SELECT holdfast.record_put('$1', '\\x$2', $3, 1, 'k', 'late', 0, 60000)"
}
blocked() { # COUNT
    says "$1" a "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'holdfast'"
}

# a put that was stopped before it has the row reads the clock afterwards
ask b acquire 1 clock 4000 0
t=$(token)
ask b owner 1
owner=${answer#ok }
in_transaction "SELECT FROM holdfast.lock WHERE name = 'clock' FOR UPDATE"
put_in_sql clock "$owner" "$t" >"$dir/late" &
late=$!
eventually 10 blocked 1
eventually 10 is_free a clock
committed
wait "$late"
is "$(cat "$dir/late")" expired 'a put that had to wait for the row sees what time it is then'
ask b get clock k
like "$answer" 'ok now=*' 'and writes nothing'
ask b release 1

# a put that is in the middle of its work holds up the next holder
ask b acquire 1 middle 4000 0
t=$(token)
ask b owner 1
owner=${answer#ok }
in_transaction 'LOCK TABLE holdfast.record IN SHARE MODE'
put_in_sql middle "$owner" "$t" >"$dir/late" &
late=$!
eventually 10 blocked 1
eventually 10 is_free a middle
client g "$(url a)"
tell g acquire 1 middle 20000 20000
sleep 1
silent g
ok $? 'while a put is in the middle of its work nobody else gets the lock'
committed
wait "$late"
is "$(cat "$dir/late")" written 'it is written'
hear g
like "$answer" 'ok *' 'then the next one has the lock'
ask g get middle k
like "$answer" 'ok \[k=late *' 'and finds what was written before'
ask g release 1
ask b release 1

# what has expired goes, a few at a time, and by a later hold
records() { sql a "SELECT count(*) FROM holdfast.record WHERE lock = '$1'"; }
ask b acquire 1 keep 20000 0
for i in $(seq 20); do
    ask b put 1 "short:$i" x 1
done
ask b put 1 for-ever x
eventually 5 eval 'ask b records keep short:; [ "$answer" = ok ]'
ok $? 'what has expired is not shown'
is "$(records keep)" 21 'what a hold wrote stays until another hold writes: a late copy finds it'
ask b release 1
ask b acquire 1 keep 20000 0
ask b put 1 other x
is "$(records keep)" 14 'a put of the next one removes eight'
ask b put 1 other y
ask b put 1 other z
is "$(records keep)" 2 'until none is left'
ask b records keep -
like "$answer" 'ok \[for-ever=x *\] \[other=z *\]' 'the others are listed'
ask b release 1

# large values are listed in pages
ask b acquire 1 large 20000 0 kept
large=$(head -c 3900 /dev/zero | tr '\0' x)
for i in $(seq 700); do
    tell b put 1 "k$i" "$large"
done
for i in $(seq 700); do
    hear b
done
ask b records large k
is "$(grep -o '\[k[0-9]*=x' <<<"$answer" | sort -u | wc -l)" 700 'a long list is complete'
ask b release 1

# damage
sql a "INSERT INTO holdfast.record VALUES ('trips', 'broken', 1, 1, now(), NULL, decode(repeat('00', 70000), 'hex'))"
ask b get trips broken
like "$answer" 'ok HF_CORRUPT*"broken"*damaged*' 'a record that cannot be read says so'
ask b records trips -
like "$answer" 'ok \[k=second *\] HF_CORRUPT*"broken"*' 'the others are shown all the same'
ask b acquire 1 trips 20000 0
ask b put 1 k third
is "$answer" ok 'and written'
ask b release 1

# a role that may use the schema, and nothing else
sql a 'CREATE ROLE app LOGIN' 'GRANT USAGE ON SCHEMA holdfast TO app'
client u "postgres://app@127.0.0.1:$(port a)/postgres"
ask u acquire 1 rights 20000 0
ask u put 1 k value
is "$answer" ok 'a role with USAGE on the schema writes records'
ask u get rights k
like "$answer" 'ok \[k=value *' 'reads'
ask u records rights -
like "$answer" 'ok \[k=value *' 'and lists them'
like "$(psql -XAtq -h 127.0.0.1 -p "$(port a)" -U app -d postgres -c 'SELECT * FROM holdfast.record' 2>&1)" \
    '*permission denied*' 'and has no right on the table'
ask u release 1
client x "$(url a '?options=-csearch_path%3Devil,pg_catalog')"
sql a 'CREATE SCHEMA evil' "CREATE FUNCTION evil.floor(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 0'" \
    "CREATE FUNCTION evil.floor(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0'"
ask x get rights k
like "$answer" 'ok \[k=value *\] now=1*' 'whatever the search path has'

# an older schema gets the table, in place
sql a 'CREATE DATABASE old'
database=old
client o "$(url a)"
ask o acquire 1 job 20000 0 detached
t=$(token)
ask o owner 1
owner=${answer#ok }
ask o close
sql a 'DROP TABLE holdfast.record' 'DROP FUNCTION holdfast.record_put, holdfast.record_get, holdfast.record_list, holdfast.to_ms' \
    'UPDATE holdfast.version SET version = 6'
client r
ask r readonly "$(url a)"
ask r get job k
like "$answer" 'ok now=1*' 'a schema without records has none, and a clock'
ask r records job -
is "$answer" ok 'nor any to list'
is "$(sql a 'SELECT version FROM holdfast.version')" 6 'and is left as it is by whoever only reads'
ask o open "$(url a)"
is "$answer" ok 'whoever takes locks brings it up to date'
ask o adopt 1 job "$owner" "$t"
like "$answer" 'ok *' 'with what is held in it'
ask o put 1 k value
is "$answer" ok 'and writes'
ask r get job k
like "$answer" 'ok \[k=value *' 'and who was there before reads it'
ask o release 1
sql a 'CREATE DATABASE empty'
database=empty
ask r close
ask r readonly "$(url a)"
ask r get job k
like "$answer" 'ok now=1*' 'a database without a schema has no records, and a clock'
ask r records job -
is "$answer" ok 'nor any to list'
is "$(sql a "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'")" 0 'and gets none'
database=postgres

# a write is durable when it is said to be: also one that is sent again
pg_sync_standby s a
client y "$(url a)"
ask y acquire 1 sync 40000 0 kept
ask y put 1 k first
is "$answer" ok 'a put with a synchronous standby'
pg_signal s STOP
tell y put 1 k second
waits="SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ~ 'record_put'"
eventually 10 eval '[ -n "$(sql a "$waits")" ]'
sql a "SELECT pg_cancel_backend(pid) FROM ($waits) AS w" >/dev/null
sleep 1
silent y
ok $? 'the wait for the standby was cancelled: sent again, it waits again'
pg_signal s CONT
hear y
is "$answer" ok 'until the standby has it'
ask y get sync k
like "$answer" 'ok \[k=second *' 'and it is on record'
client z
ask z readonly "$(url s)"
ask z get sync k
like "$answer" 'ok HF_UNREACHABLE*read-only*' 'a standby, which may be behind, is not asked for records'
ask y release 1
done_testing
