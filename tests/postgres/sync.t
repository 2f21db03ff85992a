#!/bin/bash
# A synchronous standby: what was granted is on it, a wait for it that was given up is no grant, and
# without it nothing is granted until it is back.
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
sql a 'ALTER DATABASE postgres SET synchronous_commit = off' # the statements say on
pg_sync_standby s a
ok $? 'a primary and its synchronous standby'
client c "$(url a '?application_name=c')"
client k "$(url a)"
ask c acquire 1 held 30000 0
last=$(token)
is "$(sql s "SELECT token FROM holdfast.lock WHERE name = 'held'")" "$last" \
    'a grant is on the standby when it is told'
client r "$(url s)"
like "$answer" 'HF_UNREACHABLE*read-only here; name the primary*' 'a standby grants nothing, and says so'
tell k acquire 1 held 30000 60000
eventually 10 waiting a held 1

# the standby is frozen: nothing is granted
pg_signal s STOP
client u "$(url a)"
ask u acquire 1 frozen 30000 0
like "$answer" 'HF_UNKNOWN*' 'a frozen standby: unknown'

# an administrator cancels the wait: committed here, but maybe not there
cancel() { # CLIENT : its wait for the standby, once it has come to it
    says t a "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
        WHERE application_name = '$1' AND wait_event = 'SyncRep' LIMIT 1"
}
client v "$(url a '?application_name=v')"
tell v acquire 1 cancelled 30000 0
eventually 10 cancel v
hear v
like "$answer" 'HF_UNKNOWN*synchronous standby was cancelled*' \
    'a cancelled wait for the standby: unknown, though the row came'
eventually 10 is_free a cancelled
ok $? 'and given back'
client deaf "$(url a '?application_name=deaf&options=-c%20client_min_messages%3Derror')"
tell deaf acquire 1 unsaid 30000 0
eventually 10 cancel deaf
hear deaf
like "$answer" 'HF_UNKNOWN*synchronous standby was cancelled*' 'also for a role to which warnings are not sent'
tell c renew 1 30000
eventually 10 cancel c
hear c
like "$answer" 'HF_UNKNOWN*' 'so is a renewal'
silent k
ok $? 'a waiter needs no standby to wait'
pg_signal s CONT
eventually 20 is_free a frozen
ok $? 'thawed, what may have been granted is given back'
ask c renew 1 30000
is "$answer" ok 'the hold of before goes on'

# killed and back, frozen and back, under way
counter() {
    local value=0
    read -r _ value _ <"$dir/counter"
    echo $((10#${value:-0}))
}
counts_on() { # FROM
    [ "$(counter)" -gt $(($1 + 10)) ]
}
counters_start 4 "$(url a)" 300
eventually 30 counts_on 0
ok $? 'clients count'
pg_stop s QUIT
stuck() { says 1 a "SELECT least(1, count(*)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"; }
eventually 20 stuck
value=$(counter)
sleep 4 # longer than the ttl
[ $(($(counter) - value)) -le 1 ]
ok $? 'the standby is killed: nothing goes on without it'
pg_again s
eventually 60 counts_on "$value"
ok $? 'it is back: they go on'
pg_signal s STOP
sleep 4
pg_signal s CONT
eventually 60 counts_on "$(counter)"
ok $? 'and after a freeze'
counters_stop
counters_end 'the standby came and went'
is "$overlaps" 0 'nobody came in while another was inside'

# the primary is lost, the standby promoted: the hold is still known, and nothing else is granted
ask c renew 1 30000
pg_stop a QUIT
sql s "ALTER SYSTEM SET synchronous_standby_names = ''" 'SELECT pg_promote()' >/dev/null
eventually 20 says f s 'SELECT pg_is_in_recovery()'
client n "$(url s)"
ask n acquire 1 held 30000 0
like "$answer" 'HF_QUARANTINE*' 'the new primary does not know what it may have missed'
ask n status held
like "$answer" "*held=1 token=$last *" 'but it has the hold and its token'
done_testing
