#!/bin/bash
# The conformance suite over three servers.
set -u
. "$(dirname "$0")/lib.sh"
zk_ensemble e minSessionTimeout=400 maxSessionTimeout=20000
CONFORM_TTL_MS=1000 "$build/tests/conform/conform" "zookeeper://$(hosts e1 e2 e3)/conform"
