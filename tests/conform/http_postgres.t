#!/bin/bash
# http_postgres.t - the conformance suite by HTTP, over a Unix socket, with PostgreSQL behind the server.
set -u
. "$(dirname "$0")/../postgres/lib.sh"
. "$root/tests/serve/http.sh"

pg_start a
serve_start --store "$(url a)"
# How a server of PostgreSQL is stopped is not for ours.
trap 'kill -KILL "${server_pid[serve]}"; unset "server_pid[serve]"; finish' EXIT
"$build/tests/conform/conform" "http+unix://$sock"
