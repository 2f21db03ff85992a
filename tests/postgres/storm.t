#!/bin/bash
# Workers hold, are killed and frozen, while their server crashes, freezes and is replaced: by a standby
# that missed the last grants, and twice in a row by two standbys whose timelines have the same number.
# run: long
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/storm.sh"

primary=a first=b second=c
turns=0 promotions=0 doubles=0 sames=0
pg_start a
client k "$(url a '?max_ttl=2s')" # makes the schema
gone k
for standby in b c; do
    pg_standby $standby a
    pg_start $standby
done

again() { eventually 90 pg_again "$1"; } # its port may be somebody else's for a while
promote() { # NAME : it may be stopped
    [ -n "${server_pid[$1]-}" ] || again "$1"
    sql "$1" 'SELECT pg_promote()' >/dev/null
    eventually 30 says f "$1" 'SELECT pg_is_in_recovery()'
    promotions=$((promotions + 1))
}
timeline() { sql "$1" 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)'; }
follow() { # NAME : made anew as a standby of the primary
    pg_stop "$1" QUIT
    rm -rf "$dir/pg/$1"
    pg_standby "$1" "$primary" && again "$1"
}

crash() {
    pg_stop "$primary" QUIT
    again "$primary"
}
freeze() {
    pg_signal "$primary" STOP
    sleep 2.5 # longer than the ttl
    pg_signal "$primary" CONT
}
failover() { # the standby has not heard of the last second
    local old=$primary
    pg_stop "$first"
    sleep 1
    pg_stop "$old" QUIT
    promote "$first"
    primary=$first first=$second second=$old
    follow "$first"
    follow "$second"
}
double_failover() { # the second has not heard of the first
    local old=$primary life
    pg_stop "$second"
    pg_stop "$old" QUIT
    promote "$first"
    life=$(timeline "$first")
    sleep 4 # past the quarantine, so that there are grants to be forgotten
    pg_stop "$first" QUIT
    promote "$second"
    [ "$(timeline "$second")" = "$life" ] && sames=$((sames + 1))
    doubles=$((doubles + 1))
    primary=$second second=$old
    follow "$first"
    follow "$second"
}
fault() {
    sleep 1.5
    case $((turns % 4)) in
    0) double_failover ;;
    1) crash ;;
    2) failover ;;
    3) freeze ;;
    esac
    turns=$((turns + 1))
}

hosts="127.0.0.1:$(port a),127.0.0.1:$(port b),127.0.0.1:$(port c)"
storm 'promotions and restarts' \
    "postgres://postgres@$hosts/postgres?target_session_attrs=read-write&max_ttl=2s" 1200 600 1500 fault
above "$promotions" 5 'standbys were promoted'
above "$doubles" 1 'also two in a row'
is "$sames" "$doubles" 'on timelines of the same number'
done_testing
