#!/bin/bash
# A synchronous standby: what was granted is on it, and a wait for it that was given up is no grant.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
sql a 'ALTER DATABASE postgres SET synchronous_commit = off' # the statements say on
pg_standby s a
pg_start s
sql a "ALTER SYSTEM SET synchronous_standby_names = '*'" 'SELECT pg_reload_conf()' >/dev/null
eventually 20 eval '[ "$(sql a "SELECT sync_state FROM pg_stat_replication")" = sync ]'
ok $? 'a primary and its synchronous standby'
conforms "$(url a)" 'the conformance suite passes'

client c "$(url a)"
client k "$(url a)"
ask c acquire 1 held 30000 0
last=$(token)
is "$(sql s "SELECT token FROM holdfast.lock WHERE name = 'held'")" "$last" 'a grant is on the standby when it is told'
client r "$(url s)"
like "$answer" 'HF_UNREACHABLE*read-only here; name the primary*' 'a standby grants nothing, and says so'
tell k acquire 1 held 30000 60000
eventually 10 waiting a held 1

# the standby is frozen: nothing is granted
pg_signal s STOP
client u "$(url a)"
ask u acquire 1 frozen 30000 0
like "$answer" 'HF_UNKNOWN*' 'a frozen standby: unknown'
waits_for_standby() {
    [ "$(sql a "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")" -ge "${1-1}" ]
}

# an administrator cancels the wait: committed here, but maybe not there
client v "$(url a)"
tell v acquire 1 cancelled 30000 0
eventually 10 eval '[ "$(sql a "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '"'SyncRep'"'")" -ge 2 ]'
sql a "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" >/dev/null
hear v
like "$answer" 'HF_UNKNOWN*synchronous standby was cancelled*' 'a cancelled wait for the standby: unknown, though the row came'
eventually 10 is_free a cancelled
ok $? 'and given back'
tell c renew 1 30000
eventually 10 waits_for_standby
sql a "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" >/dev/null
hear c
like "$answer" 'HF_UNKNOWN*' 'so is a renewal'
silent k
ok $? 'a waiter needs no standby to wait'
pg_signal s CONT
eventually 20 is_free a frozen
ok $? 'thawed, what may have been granted is given back'
ask c renew 1 30000
is "$answer" ok 'the hold of before goes on'

# the primary is lost, the standby promoted: the hold is still known, and nothing else is granted
pg_stop a QUIT
sql s "ALTER SYSTEM SET synchronous_standby_names = ''" 'SELECT pg_promote()' >/dev/null
eventually 20 eval '[ "$(sql s "SELECT pg_is_in_recovery()")" = f ]'
client n "$(url s)"
ask n acquire 1 held 30000 0
like "$answer" 'HF_QUARANTINE*' 'the new primary does not know what it may have missed'
ask n status held
like "$answer" "*held=1 token=$last *" 'but it has the hold and its token'
done_testing
