#!/bin/bash
# http_redis.t - the conformance suite by HTTP, over a Unix socket, with Redis behind the server.
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$root/tests/serve/http.sh"

redis_start a
calm a
serve_start --store "$(url a)"
"$build/tests/conform/conform" "http+unix://$sock"
