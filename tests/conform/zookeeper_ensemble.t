#!/bin/bash
# zookeeper_ensemble.t - the conformance suite over three ZooKeeper servers.
# run: once
set -u
. "$(dirname "$0")/../zookeeper/lib.sh"

zk_ensemble e minSessionTimeout=400 maxSessionTimeout=20000
CONFORM_TTL_MS=2000 "$build/tests/conform/conform" "zookeeper://$(hosts e1 e2 e3)/conform?tick=200ms"
