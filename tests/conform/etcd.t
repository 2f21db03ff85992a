#!/bin/bash
# etcd.t - the conformance suite over three servers.
# run: first
# run: once
set -u
. "$(dirname "$0")/../etcd/lib.sh"

cluster_start a b c
# etcd grants no lease below 2 s, and ends them a second or so late.
CONFORM_TTL_MS=2500 "$build/tests/conform/conform" "$(url a b c)"
