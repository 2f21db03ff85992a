#!/bin/bash
# outbox.sh - what an outbox costs: a message in a transaction, a fetch behind parked messages, and the relay beside
# a DELETE of the same rows. Rows as bench/run.sh wants them.
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/support/sql_servers.sh
. tests/support/sql_servers.sh
export SQL_ON_DISK=1 SQL_PG_FSYNC=fsync=on
sql_begin
trap 'set +e; sql_end' EXIT
export HOLDFAST_STORE=file:$SQL_DIR/store

port=$(tests/support/free_ports.py 1)
pg_start listen_addresses=127.0.0.1 port="$port"
export PGPORT=$port
pg <<<'CREATE TABLE thing (k INT PRIMARY KEY, n INT); INSERT INTO thing VALUES (1, 0)'
build/holdfast outbox sql --dialect postgres | pg
build/holdfast outbox sql --dialect postgres --schema parked | pg
"$PWD/build/bench/bench_outbox_pg" "host=127.0.0.1 port=$port user=owner dbname=postgres" \
    "postgres://owner@127.0.0.1:$port/postgres" build/holdfast
