#!/bin/bash
# break.t - a hold in PostgreSQL is broken. What is special are the right to do it, the schema, and quarantine.
# shellcheck disable=SC2317 # functions that are called by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/break.sh"

pg_start a
proxy_start p a
url=$(url a)
cut() { proxy p mode deaf && proxy p strand; }
mend() { proxy p mode pass; }

break_alive "$url" 3000
break_frozen "$url" 1500
break_cut "$url" 2000 "$(url p)" cut mend
break_run "$url" 6s
break_idle "$url" 1500
break_now "$url" 3000
break_twice "$url" 20000

# It is on record, whether or not the hold is there.
is "$(sql a "SELECT convert_from(label, 'utf8') || convert_from(reason, 'utf8') || at_once
    FROM holdfast.broken WHERE lock = 'hurry'")" 'breakera testtrue' 'who broke it and why is on record'
is "$(sql a "SELECT count(*) FROM holdfast.broken WHERE lock = 'job'")" 1 'once for each lock'

# A role that may take locks may not break them.
sql a 'CREATE ROLE app LOGIN' 'GRANT USAGE ON SCHEMA holdfast TO app'
client r "$(url a | sed 's|postgres@|app@|')"
ask r acquire 1 mine 10000 0
t=$(token)
ask r break mine "$t"
like "$answer" 'HF_DENIED*may not break locks*GRANT EXECUTE ON FUNCTION holdfast.revoke*' 'not by a role that may take locks'
ask r break mine "$t" now
like "$answer" 'HF_DENIED*' 'neither at once'
ask r renew 1 10000
is "$answer" ok 'that changed nothing'
sql a 'GRANT EXECUTE ON FUNCTION holdfast.revoke TO app'
ask r break mine "$t"
like "$answer" 'ok *' 'unless it was granted'
ask r renew 1 10000
like "$answer" 'HF_LOST*broken by breaker: a test' 'a role without rights on the table hears by whom'
is "$(sql a "SELECT role FROM holdfast.broken WHERE lock = 'mine'")" app 'and the role is on record'
ask r release 1

# In quarantine a hold can be ended, and nobody has the lock before it is over.
client h "$url"
client w "$url"
client b "$url"
ask h acquire 1 quarantine 20000 0 kept
t=$(token)
tell w acquire 1 quarantine 3000 60000
eventually 10 waiting_for quarantine "$url"
sql a "UPDATE holdfast.met SET open_at = now() + interval '5 seconds'"
before=$(date +%s%3N)
ask b break quarantine "$t" now
like "$answer" 'ok left=0*' 'a hold is ended in quarantine'
is "$(sql a "SELECT owner IS NULL AND NOT handed FROM holdfast.lock WHERE name = 'quarantine'")" t 'and handed to nobody'
hear w
like "$answer" 'ok *' 'the next one has it'
above "$(date +%s%3N)" $((before + 4500)) 'when the quarantine is over'
ask w release 1

# The schema of the version before, with a hold in it.
sql a 'CREATE DATABASE old'
database=old
client o "$(url a)"
ask o acquire 1 job 30000 0 detached
t=$(token)
ask o owner 1
owner=${answer#ok }
ask o close
sql a 'DROP TABLE holdfast.broken' 'DROP FUNCTION holdfast.revoke, holdfast.who_broke' \
    'DROP FUNCTION holdfast.list' 'ALTER TABLE holdfast.lock DROP COLUMN broken' \
    'CREATE FUNCTION holdfast.list(p_prefix bytea, p_exact boolean, p_after bytea, p_scan integer)
        RETURNS TABLE (name text, held boolean, token bigint, left_ms bigint, age_ms bigint, waiters bigint,
            detached boolean, label text, n bigint)
        LANGUAGE sql SECURITY DEFINER AS $$
        SELECT encode(l.name, $s$hex$s$), true, l.token, 1000::bigint, 1000::bigint, 0::bigint, true,
            encode(l.label, $s$hex$s$), 1::bigint FROM holdfast.lock AS l $$' \
    'UPDATE holdfast.version SET version = 7'
client s
ask s readonly "$(url a)"
ask s status job
like "$answer" "ok *job held=1 token=$t *" 'who only reads reads an older schema'
is "$(sql a 'SELECT version FROM holdfast.version')" 7 'and leaves it as it is'
ask o open "$(url a)"
is "$answer" ok 'whoever takes locks brings it up to date'
ask o adopt 1 job "$owner" "$t"
ask o renew 1 30000
is "$answer" ok 'with what is held in it'
ask o break job "$t"
like "$answer" 'ok *detached=1*' 'which can be broken'
ask o renew 1 30000
like "$answer" 'HF_LOST*broken by breaker: a test' 'and is'
like "$("$hf" --store "$(url a)" status job)" '*broken *by breaker*' 'as status shows'
ask o release 1
done_testing
