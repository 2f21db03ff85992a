#!/bin/bash
# zookeeper.t - the conformance suite over one ZooKeeper server.
# run: threads
set -u
. "$(dirname "$0")/../zookeeper/lib.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=20000
CONFORM_TTL_MS=2000 "$build/tests/conform/conform" "zookeeper://$(hosts a)/conform?tick=200ms"
