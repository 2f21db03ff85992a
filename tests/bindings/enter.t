#!/bin/bash
# enter.t - lease.enter() of the Python binding with the drivers of three databases: the token is shown, and a stale one
# is refused as Stale. (run: once)
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/../fence/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
library=$(cd "$(dirname "$hf")" && pwd)
orders='CREATE TABLE orders (id INT PRIMARY KEY, state TEXT)'
export PG="host=$SQL_DIR/pg user=owner dbname=postgres" MARIA=$SQL_DIR/maria/sock HOLDFAST=$hf
{ echo "$orders;" && "$hf" fence sql --dialect postgres --table orders; } | psql -h "$SQL_DIR/pg" -U owner -d postgres -Xq >"$dir/pg.log" 2>&1
{ echo "$orders ENGINE = InnoDB;" && "$hf" fence sql --dialect mariadb --table orders; } | maria app >"$dir/maria.log" 2>&1
mkdir "$dir/work"
said=$(cd "$dir/work" && LD_LIBRARY_PATH=$library PYTHONPATH=$root/bindings/python timeout 100 /usr/bin/python3 -B \
    "$root/tests/bindings/python/enter.py" "file:$dir/locks" 2>&1)
is "$said" 'sqlite3 stale True
sqlite3 paid
unknown driver True
psycopg stale True
psycopg paid
psycopg2 stale True
psycopg2 paid
pymysql stale True
pymysql paid' 'enter with sqlite3, psycopg, psycopg2 and pymysql'
done_testing
