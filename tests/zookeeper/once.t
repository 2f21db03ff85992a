#!/bin/bash
# `holdfast once --per` on ZooKeeper: five servers at each border, killed, frozen, late and a little apart, while
# members of the ensemble are restarted, the leader too; and all five while ZooKeeper is down.
# run: also long
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that others use by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/once_storm.sh"

zk_ensemble e
restart() { # one of them by lot, every third time the leader
    local i one
    sleep "$((RANDOM % 4 + 5))"
    i=$((RANDOM % 3 + 1))
    if [ $((RANDOM % 3)) -eq 0 ]; then
        for one in 1 2 3; do
            [ "$(zk_mode "e$one")" != leader ] || i=$one
        done
    fi
    zk_stop "e$i" KILL
    sleep 0.5
    zk_launch "e$i"
}
storm_fault=restart
url="zookeeper://$(hosts e1 e2 e3)/once"
once_storm 'restarts' "$url" keys=3 slots=4 period=12 skew=83 slack=125 ttl=3000 start=60
storm_fault=
for i in 1 2 3; do
    zk_stop "e$i"
done
back() { for i in 1 2 3; do zk_launch "e$i"; done; }
once_waits 'down' "$url" back
done_testing
