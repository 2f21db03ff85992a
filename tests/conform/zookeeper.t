#!/bin/bash
# zookeeper.t - the conformance suite over one ZooKeeper server.
# run: threads
set -u
. "$(dirname "$0")/../zookeeper/lib.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=20000
# The library has threads, and TSan does not know those of a child that was forked beside others.
case $build in
*/tsan) export CONFORM_SKIP='dead_waiters_are_passed_over processes_never_overlap' ;;
esac
CONFORM_TTL_MS=1000 "$build/tests/conform/conform" "zookeeper://$(hosts a)/conform"
