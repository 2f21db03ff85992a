#!/bin/bash
# http_etcd.t - the conformance suite by HTTP, over a Unix socket, with etcd behind the server.
set -u
. "$(dirname "$0")/../etcd/lib.sh"
. "$root/tests/serve/http.sh"

etcd_start a
serve_start --store "$(url a)"
CONFORM_TTL_MS=2500 "$build/tests/conform/conform" "http+unix://$sock"
