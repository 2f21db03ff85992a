#!/bin/bash
# postgres.sh - the PostgreSQL store beside bare statements, on one server of its own, in one run. Rows as
# bench/run.sh wants them. BUILD is the folder of the build (build).
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/postgres/lib.sh
. "${root:?}/bench/rows.sh"
waiters=200

pg_fsync=on
pg_start a max_connections=250
"$build/bench/bench_postgres" pair "$(url a)" || exit 1
HOLDFAST_TRACE=1 "$build/bench/bench_postgres" handover "$(url a)" $waiters 2>"$dir/trace" || exit 1
row 'postgres: clients woken per release' "$(ratio "$(grep -c 'postgres: woken' "$dir/trace")" $waiters)" '<=1' x
