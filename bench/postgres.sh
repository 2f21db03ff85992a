#!/bin/bash
# postgres.sh - the PostgreSQL store beside bare statements, on one server of its own, in one run. Prints
# name<TAB>value<TAB>bound<TAB>unit<TAB>ok|MISS. BUILD is the folder of the build (build).
set -u
cd "$(dirname "$0")/.." || exit 1
build=$PWD/${BUILD:-build}
export HOLDFAST_STORE_PATH=$build/stores
waiters=200
bin=$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | sort -V | tail -n 1)
if [ ! -x "$build/bench/bench_pg" ] || [ ! -x "$bin/postgres" ]; then
    printf 'postgres: not measured, the plugin or the server is absent\t\t\t\tabsent\n'
    exit 0
fi
dir=$(mktemp -d)
chmod 711 "$dir"
mkdir "$dir/pg"
as=
if [ "$(id -u)" -eq 0 ]; then
    as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
    chown nobody "$dir/pg"
fi
server=
trap '[ -z "$server" ] || { kill -QUIT "$server"; wait "$server"; } 2>/dev/null; rm -rf "$dir"' EXIT

$as "$bin/initdb" -D "$dir/pg/data" -U postgres -A trust >"$dir/initdb" 2>&1 || exit 1
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
$as "$bin/postgres" -D "$dir/pg/data" -p "$port" -k '' -c listen_addresses=127.0.0.1 \
    -c max_connections=250 >"$dir/log" 2>&1 </dev/null &
server=$!
for _ in $(seq 200); do
    "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && break
    sleep 0.05
done
url=postgres://postgres@127.0.0.1:$port/postgres

"$build/bench/bench_pg" pair "$url" || exit 1
HOLDFAST_TRACE=1 "$build/bench/bench_pg" handover "$url" $waiters 2>"$dir/trace" || exit 1
grep -c 'postgres: woken' "$dir/trace" | awk -v n=$waiters '{
    printf "postgres: clients woken per release\t%.3f\t<= 1\tx\t%s\n", $1 / n, ($1 <= n ? "ok" : "MISS") }'
