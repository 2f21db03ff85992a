#!/bin/bash
# `holdfast once --per` on etcd: five servers at each border, killed, frozen, late and a little apart, while a
# member of the cluster is restarted; and all five while etcd is down.
#
# The ratios of skew, slack and period are those of the other stores, 10 and 15 minutes to a day. But etcd tells
# the time in whole seconds, rounded down, which is a second that does not shrink with the day: a server that is a
# millisecond early is a whole second early by that clock. So the slack is longer by a second here, as it would be
# by a second of 15 minutes in earnest.
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
once_storm 'restarts' "$(url a b c)" keys=3 slots=4 period=12 skew=83 slack=1125 ttl=3000 start=60
storm_fault=
for name in a b c; do
    etcd_stop "$name"
done
back() { for name in a b c; do etcd_run "$name"; done; }
once_waits 'down' "$(url a b c)" back
done_testing
