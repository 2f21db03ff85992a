#!/bin/bash
# `holdfast once --per` on PostgreSQL: five servers at each border, killed, frozen, late and a little apart, while
# the database is restarted; and all five while it is down, or in quarantine after a failover.
# run: also long
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that others use by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/once_storm.sh"

pg_start a
restart() {
    sleep "$((RANDOM % 5 + 4)).$((RANDOM % 10))"
    pg_stop a QUIT
    eventually 30 pg_again a || echo '# the server did not start again'
}
storm_fault=restart
once_storm 'restarts' "$(url a '?max_ttl=4s')" keys=3 slots=4 period=12 skew=83 slack=125 ttl=4000 start=60
storm_fault=
pg_stop a
once_waits 'down' "$(url a '?max_ttl=4s')" 'pg_again a'
pg_standby s a
pg_start s
pg_stop a QUIT
sql s 'SELECT pg_promote()' >/dev/null
eventually 20 says f s 'SELECT pg_is_in_recovery()'
ok $? 'a standby is promoted'
once_waits 'quarantine' "$(url s '?max_ttl=4s')" true
done_testing
