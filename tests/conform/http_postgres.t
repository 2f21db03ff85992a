#!/bin/bash
# http_postgres.t - the conformance suite by HTTP, over a Unix socket, with PostgreSQL behind the server.
set -u
. "$(dirname "$0")/../postgres/lib.sh"
. "$root/tests/serve/http.sh"

pg_start a
serve_start --store "$(url a)"
# server_stop is for PostgreSQL's servers, and ours is none.
trap 'kill -KILL "${server_pid[serve]}"; unset "server_pid[serve]"; finish' EXIT
"$build/tests/conform/conform" "http+unix://$sock"
