#!/bin/bash
# redis.sh - the Redis store beside its peers, on one server of its own, in one run. Prints
# name<TAB>value<TAB>limit<TAB>unit<TAB>ok|MISS, or "absent" for a peer that is not installed.
# BUILD is the folder of the build (build). With quick as argument the long parts are short.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/redis/lib.sh
. bench/rows.sh
seconds=5 keep_seconds=35
[ "${1-}" != quick ] || seconds=2 keep_seconds=12

# Debian's own python has Debian's python3-redis.
python=python3
python3 -c 'import redis' 2>/dev/null || python=/usr/bin/python3

declare -A seen
note() { # runs a command and keeps its "name value" lines
    local name value
    while read -r name value; do
        seen[$name]="${seen[$name]-} $value"
    done < <("$@" 2>>"$dir/errors")
}
value() { # NAME : the median of what was noted
    # shellcheck disable=SC2086 # numbers
    [ -z "${seen[$1]-}" ] || printf '%s\n' ${seen[$1]} | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

calls() { rcli a info commandstats | tr -d '\r' | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"; }

redis_start a
calm a
port=$(port a)

node=no
if command -v npm >/dev/null; then
    mkdir "$dir/node"
    (cd "$dir/node" && npm install --silent --no-audit --no-fund redlock@5.0.0-beta.2 ioredis) \
        >>"$dir/errors" 2>&1 && node=yes
fi
# In turns, so that whatever else the machine does hits all of them.
for _ in 1 2 3 4 5; do
    note "$build/bench/bench_redis" pair "$port"
    note "$python" bench/redis_peers.py pair "$port"
    [ $node = no ] || note env -C "$dir/node" node "$PWD/bench/redis_peers.mjs" "$port"
done
ours=$(value holdfast_pair_us)
row redis.raw_pair "$(value raw_pair_us)" - us
row redis.pair "$ours" - us
row redis.pair_vs_raw "$(ratio "$ours" "$(value raw_pair_us)")" '<=1.35' x
row redis.redis_py_pair "$(value redis_py_pair_us)" - us
row redis.redis_py_vs_pair "$(ratio "$(value redis_py_pair_us)" "$ours")" '>=2.5' x
row redis.node_redlock_pair "$(value node_redlock_pair_us)" - us
row redis.node_redlock_vs_pair "$(ratio "$(value node_redlock_pair_us)" "$ours")" '>=2.5' x

# round trips at the socket, and wake-ups per hand-over
proxy_start p a
exec {in}> >("$build/tests/tools/tool_client" >"$dir/client.out")
trip() { # COMMAND... : the client's command, and how many round trips it took
    local lines
    lines=$(wc -l <"$dir/client.out")
    proxy p trips
    echo "$*" >&"$in"
    until [ "$(wc -l <"$dir/client.out")" -gt "$lines" ]; do sleep 0.01; done
    proxy p trips
}
trip open "redis://127.0.0.1:$(port p)"
trip acquire 1 bench:trip 5000 0
# shellcheck disable=SC2154 # stage.sh sets it
row redis.acquire_round_trips "$proxied" '=1' trips
trip release 1
row redis.release_round_trips "$proxied" '=1' trips
exec {in}>&-

rcli a config resetstat >/dev/null
note "$build/bench/bench_redis" contend "$port" 50 "$seconds"
woken=$(calls rpush)
row redis.handovers_50 "$(value handovers_per_s)" - 1/s
row redis.wakeups_per_handover "$(ratio "${woken:-0}" "$(value handovers)")" '<=1.01' x
row redis.order_broken "$(value disorder)" '=0' holds
note "$python" bench/redis_peers.py contend "$port" 50 "$seconds"
row redis.redis_py_handovers_50 "$(value redis_py_handovers_per_s)" - 1/s
row redis.handovers_vs_redis_py "$(ratio "$(value handovers_per_s)" "$(value redis_py_handovers_per_s)")" '>=10' x

note "$build/bench/bench_redis" keep "$port" 10000 30000 "$keep_seconds"
row redis.keep_10000_cpu "$(value keep_cpu_percent)" '<=10' %
row redis.keep_10000_oldest "$(value keep_oldest_share)" '<=0.5' ttl
row redis.keep_10000_lost "$(value keep_lost)" '=0' leases
[ ! -s "$dir/errors" ] || sed 's/^/# /' "$dir/errors" | head -n 20 >&2
