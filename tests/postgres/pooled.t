#!/bin/bash
# A fail-over behind PgBouncer: the pooler goes on to an asynchronous standby that was promoted, and the
# client keeps its connection. Only the server's own identity can tell.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
command -v pgbouncer >/dev/null || skip_all 'pgbouncer is not installed'

pg_start a
pg_bouncer b a
client c "$(url b '?max_ttl=6s')"
ask c acquire 1 known 6000 0
pg_standby s a
pg_start s
eventually 20 says 1 s 'SELECT count(*) FROM holdfast.lock'
ok $? 'a primary, its asynchronous standby, and a pooler'
pg_stop s
client d "$(url b '?max_ttl=6s')"
ask d acquire 1 forgotten 6000 0
like "$answer" 'ok *' 'a grant that the standby does not get'
token=$(token)
sockets() { find "/proc/${client_pid[c]}/fd" -lname 'socket:*' -printf '%l ' | tr ' ' '\n' | sort; }
before=$(sockets)
pg_stop a QUIT
pg_again s
promoted=$(date +%s%N)
sql s 'SELECT pg_promote()' >/dev/null
eventually 20 says f s 'SELECT pg_is_in_recovery()'
bouncer_to b s
led() { says "$(port s)" b 'SHOW port'; }
eventually 20 led
ok $? 'the pooler leads to the promoted standby'
is "$(sql s "SELECT count(*) FROM holdfast.lock WHERE name = 'forgotten'")" 0 'which has forgotten the grant'
ask c acquire 2 forgotten 5000 0
like "$answer" 'HF_QUARANTINE*promoted or restored*' 'it grants nothing to a client that knew the old one'
is "$(sockets)" "$before" 'on the connection it always had'
ask d renew 1 6000
like "$answer" 'HF_LOST*' 'the forgotten hold is lost, and not made again'
ask c acquire 2 forgotten 5000 30000
like "$answer" 'ok *' 'a wait covers the quarantine'
above "$(token)" "$token" 'and the token is above the forgotten one'
above $((($(date +%s%N) - promoted) / 1000000)) 5990 'it lasted as long as any hold could have (ms)'
done_testing
