#!/bin/bash
# http_redlock.t - the conformance suite by HTTP, over a Unix socket, with five masters of a Redlock behind the server.
set -u
. "$(dirname "$0")/../redlock/lib.sh"
. "$root/tests/serve/http.sh"

nodes 5
serve_start --store "$(redlock '?node_timeout=1s')"
CONFORM_TTL_MS=1500 "$build/tests/conform/conform" "http+unix://$sock"
