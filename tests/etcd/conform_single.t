#!/bin/bash
# The conformance suite over a single server.
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
CONFORM_TTL_MS=2500 CMOCKA_MESSAGE_OUTPUT=TAP "$build/tests/conform/conform" "$(url a)"
