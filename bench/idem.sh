#!/bin/bash
# idem.sh - what idempotency keys cost, side by side with the same three statements by hand. Rows as
# bench/run.sh wants them.
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/support/sql_servers.sh
. tests/support/sql_servers.sh
export SQL_ON_DISK=1 SQL_PG_FSYNC=fsync=on
sql_begin
trap 'set +e; sql_end' EXIT

tables='CREATE TABLE hand (scope VARCHAR(255), "key" VARCHAR(255), fingerprint VARCHAR(64), status INT, answer TEXT,
    PRIMARY KEY (scope, "key")); CREATE TABLE effect (v VARCHAR(40));'

port=$(tests/support/free_ports.py 1)
pg_start listen_addresses=127.0.0.1 port="$port"
export PGPORT=$port
pg <<<"$tables"
build/holdfast idem sql --dialect postgres | pg
build/bench/bench_idem_pg "host=127.0.0.1 port=$port user=owner dbname=postgres"
pg_stop

sqlite3 "$SQL_DIR/app.db" "PRAGMA journal_mode = WAL; $tables" >/dev/null
build/holdfast idem sql --dialect sqlite | sqlite3 -bail "$SQL_DIR/app.db"
build/bench/bench_idem_sqlite "$SQL_DIR/app.db"

maria_start
maria -e 'CREATE DATABASE app'
maria app <<<"${tables//\"/\`}"
build/holdfast idem sql --dialect mariadb | maria app
/usr/bin/python3 bench/idem_mariadb.py "$SQL_DIR/maria/sock"
