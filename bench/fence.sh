#!/bin/bash
# fence.sh - what a fence costs, side by side with the same write without one. Durable: the servers sync
# to the disk as they do by default. Rows as bench/run.sh wants them.
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/support/sql_servers.sh
. tests/support/sql_servers.sh
# shellcheck source=tests/fence/redis.sh
. tests/fence/redis.sh
export SQL_ON_DISK=1 SQL_PG_FSYNC=fsync=on
sql_begin
REDIS_DIR=
trap 'set +e; [ -z "$REDIS_DIR" ] || redis_end; sql_end' EXIT

# All of one shape: what differs is the fence.
tables='CREATE TABLE plain (id INT PRIMARY KEY, v INT, k INT NOT NULL);
    WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 10000)
    INSERT INTO plain SELECT id, 0, (id + 999) / 1000 FROM n;
    CREATE TABLE fenced (id INT PRIMARY KEY, v INT, k INT NOT NULL); INSERT INTO fenced SELECT * FROM plain;
    CREATE TABLE keyed (id INT PRIMARY KEY, v INT, k INT NOT NULL); INSERT INTO keyed SELECT * FROM plain;
    ANALYZE plain; ANALYZE fenced; ANALYZE keyed;'

port=$(tests/support/free_ports.py 1)
pg_start listen_addresses=127.0.0.1 port="$port"
export PGPORT=$port
pg <<<"$tables"
build/holdfast fence sql --dialect postgres --table fenced | pg
build/holdfast fence sql --dialect postgres --table keyed --key-column k | pg
build/bench/bench_fence_pg "host=127.0.0.1 port=$port user=owner dbname=postgres"
bench/fence_clients.sh "$port"
pg_stop

sqlite3 "$SQL_DIR/app.db" "$tables"
build/holdfast fence sql --dialect sqlite --table fenced | sqlite3 "$SQL_DIR/app.db"
build/holdfast fence sql --dialect sqlite --table keyed --key-column k | sqlite3 "$SQL_DIR/app.db"
build/bench/bench_fence_sqlite "$SQL_DIR/app.db"

maria_start
maria -e 'CREATE DATABASE app; SET GLOBAL innodb_flush_log_at_trx_commit = 1'
maria app <<<"SET max_recursive_iterations = 20000; $(sed 's/ANALYZE/ANALYZE TABLE/g; s/^    WITH RECURSIVE/    INSERT INTO plain WITH RECURSIVE/
    s/^    INSERT INTO plain SELECT id, 0/    SELECT id, 0/; s/(id + 999) \/ 1000/(id + 999) DIV 1000/' <<<"$tables")" >/dev/null
build/holdfast fence sql --dialect mariadb --table fenced | maria app
build/holdfast fence sql --dialect mariadb --table keyed --key-column k | maria app
build/bench/bench_fence_mariadb "$SQL_DIR/maria/sock"
maria_stop

mkdir "$SQL_DIR/files"
build/bench/bench_fence_file "$SQL_DIR/files"

redis_begin
build/holdfast fence script >"$SQL_DIR/script"
build/bench/bench_fence_redis "${REDIS_URL##*:}" "$SQL_DIR/script"
