#!/bin/bash
# Workers that are killed and frozen while the server is killed and frozen too: with everything on disk,
# and with nothing on disk.
# run: long
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/storm.sh"

opt='?max_ttl=2s'
between() { sleep "$((RANDOM % 4 + 3)).$((RANDOM % 10))"; }
restart() { # a crash, or a freeze that is longer than any ttl
    between
    if [ $((RANDOM % 3)) -eq 0 ]; then
        kill -STOP "$(pid "$server")"
        sleep 2.5
        kill -CONT "$(pid "$server")"
    else
        redis_stop "$server" KILL
        sleep "0.$((RANDOM % 10))"
        redis_again "$server" || echo "# $server did not start again"
    fi
}

server=disk
redis_start disk --appendonly yes --appendfsync always
storm 'AOF' "$(url disk "$opt")" 1000 900 1500 restart
redis_stop disk

server=memory
redis_start memory
storm 'no AOF' "$(url memory "$opt")" 1000 900 1500 restart
redis_stop memory
done_testing
