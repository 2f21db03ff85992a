#!/bin/bash
# Three servers with the usual tick, frozen and restarted in turn, while workers hold locks and are killed and
# frozen themselves.
# run: long
# shellcheck disable=SC2317 # fault is called by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/storm.sh"
zk_ensemble e tickTime=2000

role() { # follower or leader: one that is it now, or the first server
    local i
    for i in 1 2 3; do
        [ "$(zk_mode "e$i")" != "$1" ] || break
    done
    echo "e$i"
}
all_serve() {
    local i
    for i in 1 2 3; do
        zk_serves "e$i" || return 1
    done
}
freeze() { # ROLE SECONDS
    local name
    name=$(role "$1")
    kill -STOP "$(pid "$name")"
    sleep "$2"
    kill -CONT "$(pid "$name")"
}
restart() { # ROLE SIGNAL
    local name
    name=$(role "$1")
    zk_stop "$name" "$2"
    sleep 2
    zk_launch "$name"
}
turn=0
fault() {
    case $((turn++ % 5)) in
    0) freeze follower 6 ;;
    1) restart follower KILL ;;
    2) freeze leader 8 ;;
    3) restart leader TERM ;;
    4) restart leader KILL ;;
    esac
    eventually 60 all_serve
    sleep 4
}
# A dead worker stands in the line until its session ends, and a frozen one is overtaken only then: up to two
# ticks after the ttl.
export STORM_KILL_MS=4500 STORM_FREEZE_EVERY_MS=1200 STORM_FREEZE_MS=5000
storm 'three servers' "zookeeper://$(hosts e1 e2 e3)/storm" 1000 900 2000 fault
done_testing
