#!/bin/bash
# `holdfast once --per` on etcd: five servers at each border, killed, frozen, late and a little apart, while a
# member of the cluster is restarted; and all five while etcd is down.
#
# etcd tells the time in whole seconds, which counts as a second of skew: the slack is longer by that.
# run: also long
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that others use by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/once_storm.sh"

cluster_start a b c
restart() { # one of them, by turns
    local name
    sleep "$((RANDOM % 4 + 5))"
    name=$(printf '%s\n' a b c | sed -n "$((RANDOM % 3 + 1))p")
    etcd_stop "$name" KILL
    sleep 0.5
    etcd_again "$name"
}
storm_fault=restart
once_storm 'restarts' "$(url a b c)" keys=3 slots=4 period=12 skew=83 slack=1200 ttl=3000 start=60
storm_fault=
for name in a b c; do
    etcd_stop "$name"
done
back() { for name in a b c; do etcd_run "$name"; done; }
once_waits 'down' "$(url a b c)" back
done_testing
