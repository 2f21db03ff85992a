#!/bin/bash
# The conformance suite over one server.
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=20000
CONFORM_TTL_MS=1000 "$build/tests/conform/conform" "zookeeper://$(hosts a)/conform"
