#!/bin/bash
# A storm over three servers whose leader is frozen or killed, again and again.
#
# A frozen leader of an etcd before 3.4.31 or 3.5.13 may end leases that are alive when it thaws, if in its
# view they have expired. That is not our fault but would look like it: such a leader is frozen for less
# time than a lease lasts.
# run: long
# shellcheck disable=SC2034,SC2317 # functions and variables that others use
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/storm.sh"

cluster_start a b c
version=$(etcd --version | sed -n 's/^etcd Version: //p')
case $version in
3.[0-3].* | 3.4.? | 3.4.[12]? | 3.4.30 | 3.5.? | 3.5.1[0-2]) frozen_s=1.6 ;;
*) frozen_s=6 ;;
esac
echo "# etcd $version: the leader is frozen for ${frozen_s}s"

turn=0
fault() {
    local name
    turn=$((turn + 1))
    name=$(leader a b c) || { sleep 0.5; return; }
    case $((turn % 3)) in
    0) # killed, and back
        etcd_stop "$name" KILL
        sleep 1
        etcd_again "$name"
        ;;
    1) # frozen
        kill -STOP "$(pid "$name")"
        sleep "$frozen_s"
        kill -CONT "$(pid "$name")"
        ;;
    2) # a follower
        name=$(printf '%s\n' a b c | grep -v "$name" | head -n 1)
        kill -STOP "$(pid "$name")"
        sleep 3
        kill -CONT "$(pid "$name")"
        ;;
    esac
    sleep 3
}
# A dead worker stands in the queue until its lease ends, five seconds later if no other server comes to lead:
# a new leader gives every lease its full time again. And a frozen one is overtaken only then.
export STORM_KILL_MS=4500 STORM_FREEZE_EVERY_MS=1200 STORM_FREEZE_MS=2500
storm etcd "$(url a b c)" 1000 1200 3000 fault
client k "$(url a b c)"
free() { ask k list -; [ "$answer" = ok ]; }
eventually 30 free
ok $? 'nothing stays behind'
done_testing
