#!/bin/bash
# redlock.sh - redlock over five local servers, beside its floor and its best-known peer. Prints
# name<TAB>value<TAB>bound<TAB>unit<TAB>ok|MISS, or "absent" for a peer that is not installed.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/redis/lib.sh
. bench/rows.sh

value() { sed -n "s/^$1 //p" "$dir/out"; }
calls() { # of scripts, at one node
    rcli n1 info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'
}

ports=()
for n in n1 n2 n3 n4 n5; do
    redis_start "$n"
    id=$(rcli "$n" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$n" set holdfast:inc "$id 1 1 60000" >/dev/null
    ports+=("$(port "$n")")
done

servers_us() { # CPU time of the five servers so far
    local n sum=0 ns
    for n in n1 n2 n3 n4 n5; do
        read -r ns _ <"/proc/$(pid "$n")/schedstat"
        sum=$((sum + ns / 1000))
    done
    echo "$sum"
}

"$build/bench/bench_redlock" pair "${ports[@]}" >"$dir/out"
ours=$(value redlock_us)
row 'redlock: five raw SET NX PX + DEL, three answers' "$(value floor_us)" '' us
row 'redlock: acquire + release, five nodes' "$ours" '' us
row 'redlock: times the floor' "$(value redlock_ratio)" '<=1.5' x

# CPU time does not depend on how many cores the servers share, or with whom.
before=$(servers_us)
"$build/bench/bench_redlock" floor 4000 "${ports[@]}" >"$dir/out"
row 'redlock: CPU of a pair, raw, client' "$(value cpu_us)" '' us
row 'redlock: CPU of a pair, raw, five servers' "$(ratio "$(($(servers_us) - before))" 4000)" '' us
before=$(servers_us)
echo | BENCH_LOCK=bench:cpu "$build/bench/bench_redlock" latency 4000 "${ports[@]}" >"$dir/out"
ours_cpu=$(value cpu_us)
row 'redlock: CPU of a pair, client' "$ours_cpu" '' us
row 'redlock: CPU of a pair, five servers' "$(ratio "$(($(servers_us) - before))" 4050)" '' us

node=
node_cpu=
if command -v npm >/dev/null && mkdir "$dir/node" &&
    (cd "$dir/node" && npm install --silent --no-audit --no-fund redlock@5.0.0-beta.2 ioredis) >/dev/null 2>&1; then
    cp bench/redlock_peer.mjs "$dir/node/peer.mjs"
    before=$(servers_us)
    (cd "$dir/node" && timeout 120 node peer.mjs "${ports[@]}") >"$dir/out"
    node=$(value node_redlock_us)
    node_cpu=$(value node_cpu_us)
    node_servers=$(ratio "$(($(servers_us) - before))" 2400)
fi
row 'redlock: node-redlock, five nodes' "$node" '' us
row 'redlock: times faster than node-redlock' "$(ratio "$node" "$ours")" '>=5' x
row 'redlock: CPU of a pair, node-redlock, client' "$node_cpu" '' us
row 'redlock: CPU of a pair, node-redlock, five servers' "${node_servers-}" '' us
row 'redlock: client CPU, node-redlock over ours' "$(ratio "$node_cpu" "$ours_cpu")" '' x

# One handshake when it opens; then each pair is one request to grant and one to release.
before=$(calls)
"$build/bench/bench_redlock" once "${ports[@]}"
row 'redlock: round trips of an uncontended acquire' "$(($(calls) - before - 2))" '<=1' ''
# A client whose clock is a second ahead, then one that is behind it.
if [ -e /usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 ]; then
    ahead() {
        LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 FAKETIME=+1s \
            FAKETIME_DONT_FAKE_MONOTONIC=1 "$build/bench/bench_redlock" once "${ports[@]}"
    }
    before=$(calls)
    ahead
    row 'redlock: round trips, clock a second ahead' "$(($(calls) - before - 2))" '<=1' ''
    before=$(calls)
    "$build/bench/bench_redlock" once "${ports[@]}"
    row 'redlock: round trips, clock a second behind' "$(($(calls) - before - 2))" '<=2' ''
fi

echo | BENCH_LOCK=bench:healthy "$build/bench/bench_redlock" latency 4000 "${ports[@]}" >"$dir/out"
healthy=$(value p99_us)
mkfifo "$dir/go"
BENCH_LOCK=bench:frozen "$build/bench/bench_redlock" latency 4000 "${ports[@]}" <"$dir/go" >"$dir/out" &
measured=$!
exec 3>"$dir/go"
until grep -q ready "$dir/out"; do sleep 0.05; done
kill -STOP "$(pid n3)"
echo go >&3
wait "$measured"
kill -CONT "$(pid n3)"
row 'redlock: p99 of a pair' "$healthy" '' us
row 'redlock: p99 with one of five frozen, times healthy' "$(ratio "$(value p99_us)" "$healthy")" '<=1.3' x

if [ -x "$build/tests/sim/tool_sim" ]; then
    "$build/tests/sim/tool_sim" --seeds 5000 >"$dir/out"
    row 'redlock: simulated acquisitions' \
        "$(sed -n 's/.* acquisitions_per_s \([0-9]*\).*/\1/p' "$dir/out")" '>=100000' /s
fi
