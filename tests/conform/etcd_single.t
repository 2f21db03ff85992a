#!/bin/bash
# etcd_single.t - the conformance suite over a single server.
# run: first
# run: threads
set -u
. "$(dirname "$0")/../etcd/lib.sh"

etcd_start a
CONFORM_TTL_MS=2500 "$build/tests/conform/conform" "$(url a)"
