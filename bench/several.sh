#!/bin/bash
# several.sh [STORE...] - one of several locks, and all of several, beside one lock and beside counting
# semaphores: npm's redis-semaphore, and kazoo's Semaphore. Each store on servers of its own, in one run. Rows as
# rows.sh prints them. BUILD is the folder of the build (build).
# shellcheck disable=SC2046,SC2086,SC2317 # lists of words and numbers; functions that are called by name
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/rows.sh
bench=${BUILD:-build}/bench/bench_several
case $bench in /*) ;; *) bench=$PWD/$bench ;; esac
seconds=5 crowd=50
eight='bench#0 bench#1 bench#2 bench#3 bench#4 bench#5 bench#6 bench#7'

# Waiting processes, and what COMMAND counts of them at the server.
connections() { # STORE URL COMMAND...
    local store=$1 url=$2 before
    shift 2
    before=$("$@")
    mkfifo "$dir/stand.in" "$dir/stand.out"
    "$bench" stand "$url" $crowd <"$dir/stand.in" >"$dir/stand.out" &
    exec 5>"$dir/stand.in" 6<"$dir/stand.out"
    read -r -t 60 _ <&6
    row "$store: connections of $crowd processes that wait in 8 queues, and a holder" $(($("$@") - before)) '<=60' ''
    exec 5>&- 6<&-
    wait $!
    rm "$dir/stand.in" "$dir/stand.out"
}

# Round trips of one of 8 with 7 held, at the socket of a proxy in front of server a.
trips() { # STORE URL PROXIED_URL
    local i
    client h "$2"
    client c "$3"
    ask c any 1 0 $eight # has its statements and scripts there
    ask c release 1
    for i in 0 1 2 3 4 5 6; do ask h acquire "$i" "bench#$i" 20000 0; done
    proxy p trips
    ask c any 1 0 $eight
    proxy p trips
    # shellcheck disable=SC2154 # stage.sh sets it
    row "$1: round trips, one of 8 with 7 held" "$proxied" '<=2' trips
    ask c release 1
    for i in 0 1 2 3 4 5 6; do ask h release "$i"; done
    gone h
    gone c
}
# The sum of what fifty processes of a peer count per second. Each is started with COMMAND... START SECONDS.
peers() { # COMMAND...
    local n pids=() start=$((EPOCHSECONDS + 20))
    for n in $(seq $crowd); do
        "$@" $start $seconds >"$dir/had.$n" 2>>"$dir/peers" &
        pids+=($!)
    done
    wait "${pids[@]}"
    cat "$dir"/had.* | awk -v s=$seconds -v n=$crowd '{ sum += $1 } END { if (NR == n) printf "%.1f", sum / s }'
    rm "$dir"/had.*
}
handovers() { "$bench" contend "$1" $crowd $seconds | sed -n 's/^handovers_per_s //p'; }

bench_file() {
    dir=$(mktemp -d) || return
    trap 'rm -rf "$dir"' EXIT
    "$bench" pair "file:$dir" file
    "$bench" release "file:$dir" file
}

bench_redis() {
    local counts
    . tests/redis/lib.sh
    cd "${root:?}" || return
    redis_start a
    calm a
    local url
    url=redis://127.0.0.1:$(port a)
    "$bench" pair "$url" redis
    "$bench" release "$url" redis
    proxy_start p a
    trips redis "$url" "redis://127.0.0.1:$(port p)"
    ours=$(handovers "$url") # before those who are killed while they wait
    clients() { rcli a client list | grep -c '^id='; }
    connections redis "$url" clients
    mkdir "$dir/node"
    (cd "$dir/node" && npm install --silent --no-audit --no-fund redis-semaphore ioredis) >"$dir/npm" 2>&1 && {
        cd "$dir/node" || exit
        counts=$(peers node "$root/bench/redis_semaphore.mjs" "$(port a)" 8)
        cd "$root" || exit
    }
    row "redis: hand-overs, 8 slots, $crowd processes" "$ours" - 1/s
    row 'redis: redis-semaphore, same load' "${counts-}" - 1/s
    row 'redis: hand-overs / redis-semaphore' "$(ratio "$ours" "${counts-}")" '>=5' x
}

bench_postgres() {
    . tests/postgres/lib.sh
    cd "${root:?}" || return
    pg_fsync=on
    pg_start a max_connections=150
    "$bench" pair "$(url a)" postgres
    "$bench" release "$(url a)" postgres
    proxy_start p a
    trips postgres "$(url a)" "postgres://postgres@127.0.0.1:$(port p)/postgres"
    ours=$(handovers "$(url a)")
    backends() { sql a "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"; }
    connections postgres "$(url a)" backends
    row "postgres: hand-overs, 8 slots, $crowd processes" "$ours" - 1/s
}

bench_etcd() {
    . tests/etcd/lib.sh
    cd "${root:?}" || return
    etcd_start a
    "$bench" pair "$(url a)" etcd
    "$bench" release "$(url a)" etcd
    row "etcd: hand-overs, 8 slots, $crowd processes" "$(handovers "$(url a)")" - 1/s
}

bench_zookeeper() {
    local url counts
    . tests/zookeeper/lib.sh
    cd "${root:?}" || return
    # shellcheck disable=SC2034 # zk_launch uses both
    java_options='-Dzookeeper.forceSync=yes' java_compiler=
    zk_start a maxSessionTimeout=60000 tickTime=2000 maxClientCnxns=200
    url="zookeeper://$(hosts a)/bench"
    "$bench" pair "$url" zookeeper
    "$bench" release "$url" zookeeper
    ours=$(handovers "$url")
    counts=$(peers /usr/bin/python3 bench/zookeeper_semaphore.py "$(hosts a)" 8)
    row "zookeeper: hand-overs, 8 slots, $crowd processes" "$ours" - 1/s
    row "zookeeper: kazoo's Semaphore, same load" "$counts" - 1/s
    row "zookeeper: hand-overs / kazoo's Semaphore" "$(ratio "$ours" "$counts")" '>=1.5' x
}

[ $# -gt 0 ] || set -- file redis postgres etcd zookeeper
for store in "$@"; do
    ("bench_$store")
done
