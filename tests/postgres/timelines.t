#!/bin/bash
# Two standbys promoted one after the other, where the second never saw the first one's history: both
# write on a timeline of the same number. And lives that come back: rewound, restored, cloned. What one of
# them granted and the next has forgotten is not granted while it may be held.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

promote() { # NAME
    sql "$1" 'SELECT pg_promote()' >/dev/null
    eventually 20 says f "$1" 'SELECT pg_is_in_recovery()'
}
incarnation() { sql "$1" 'SELECT holdfast.incarnation()'; }
settled() { # CLIENT : past the quarantine, and past answers that the old server owed
    local try
    for try in 1 2 3; do
        ask "$1" acquire 1 warm 5000 30000
        case $answer in ok*) break ;; esac
    done
    ask "$1" release 1
}

pg_start a wal_log_hints=on wal_keep_size=256MB
client first "$(url a '?max_ttl=10s')"
ask first acquire 1 old 1000 0
ask first release 1
gone first
pg_standby s1 a
pg_standby s2 a
pg_standby spare a
pg_start s1
pg_start s2
eventually 20 says 1 s1 'SELECT count(*) FROM holdfast.met' &&
    eventually 20 says 1 s2 'SELECT count(*) FROM holdfast.met'
ok $? 'a primary and two standbys'
pg_stop s2
hosts="127.0.0.1:$(port a),127.0.0.1:$(port s1),127.0.0.1:$(port s2)"
all="postgres://postgres@$hosts/postgres?target_session_attrs=read-write&max_ttl=10s"
client stayed "$all"
ask stayed acquire 2 warm 1000 0
ask stayed release 2
pg_stop a QUIT
promote s1
ok $? 'the first standby is promoted'
client holder "$all"
client met "$all"
settled met
is "$answer" ok 'a client has met it'
s1_life=$(incarnation s1)
ask holder acquire 1 job 10000 20000
like "$answer" 'ok *' 'and another holds a lock there, for 10s'
token=$(token)
granted=$(date +%s%N)

pg_stop s1 QUIT
pg_again s2
promote s2
ok $? 'then the second is promoted, which never heard of the first'
is "$(incarnation s2)" "$s1_life" 'its timeline has the same number'
for c in met stayed; do
    ask $c acquire 1 job 5000 0
    case $answer in HF_UN*) ask $c acquire 1 job 5000 0 ;; esac
    like "$answer" 'HF_QUARANTINE*' "$c: the lock is not granted to a client of that name's first life"
done
client never "$(url s2 '?max_ttl=10s')"
ask never acquire 1 job 5000 0
like "$answer" 'HF_QUARANTINE*promoted or restored*may have forgotten*' 'nor to one that never met the first'
ask met acquire 1 job 5000 30000
like "$answer" 'ok *' 'a wait covers it'
took=$((($(date +%s%N) - granted) / 1000000))
above "$took" 9990 'and lasts as long as the hold could (ms)'
above "$(token)" "$token" 'the token is above the forgotten one'
ask met release 1

# the first comes back, rewound: it follows the second now, and is promoted once more
pg_stop s2 INT
pg_again a >/dev/null
pg_stop a INT
$as "$pg_bin/pg_rewind" -D "$dir/pg/a" --source-pgdata="$dir/pg/s2" >"$dir/rewind" 2>&1
ok $? 'the old primary is rewound'
sed 's/^/# /' "$dir/rewind" | tail -n 3
$as touch "$dir/pg/a/standby.signal"
pg_again s2
eventually 20 "$pg_bin/pg_isready" -q -h 127.0.0.1 -p "$(port s2)"
$as sh -c "echo \"primary_conninfo = 'host=127.0.0.1 port=$(port s2) user=postgres'\" >>'$dir/pg/a/postgresql.auto.conf'"
pg_again a
eventually 30 says 1 s2 "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
ok $? 'and follows the second'
pg_stop a
ask met acquire 1 job 10000 20000
case $answer in HF_UN*) ask met acquire 1 job 10000 20000 ;; esac
like "$answer" 'ok *' 'a hold that it does not get'
pg_stop s2 QUIT
pg_again a
promote a
ask stayed acquire 1 job 5000 0
case $answer in HF_UN*) ask stayed acquire 1 job 5000 0 ;; esac
like "$answer" 'HF_QUARANTINE*' 'promoted, it grants nothing at first'

# a copy of the first primary, restored: its timeline repeats as well
pg_stop a QUIT
pg_start spare
promote spare
is "$(incarnation spare)" "$s1_life" 'a backup of the first primary is restored: the same number again'
client other "$(url spare '?max_ttl=10s')"
ask other acquire 1 job 5000 0
like "$answer" 'HF_QUARANTINE*' 'it grants nothing at first'
done_testing
