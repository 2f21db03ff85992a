#!/bin/bash
# zookeeper.sh - the ZooKeeper store beside the raw library and kazoo's Lock, on one server of its own,
# in one run. Prints name<TAB>value<TAB>limit<TAB>unit<TAB>ok|MISS. BUILD is the folder of the build.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/zookeeper/lib.sh >&2
java_options='-Dzookeeper.forceSync=yes'
server_wrap=
zk_start a maxSessionTimeout=60000 tickTime=2000 '4lw.commands.whitelist=srvr,mntr' >&2
h=$(hosts a)
cc -O2 -std=c11 -D_GNU_SOURCE -Iinclude bench/zookeeper_bench.c "$build/libholdfast.a" -lzookeeper_mt \
    -pthread -o "$dir/bench" || exit 1
# Debian's own python has Debian's python3-kazoo.
python=python3
python3 -c 'import kazoo' 2>/dev/null || python=/usr/bin/python3

row() { # NAME VALUE LIMIT UNIT
    local verdict
    verdict=$(awk -v v="$2" -v limit="$3" 'BEGIN { n = limit; gsub(/[<>= ]/, "", n)
        print limit == "" ? "" : (limit ~ /^</ ? v <= n + 0 : v >= n + 0) ? "ok" : "MISS" }')
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$verdict"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 0) }'; }
metric() {
    exec 4<>"/dev/tcp/127.0.0.1/${server_port[a]}" && printf mntr >&4
    sed -n "s/^zk_$1[[:space:]]//p" <&4
}

"$dir/bench" pair "$h" 20 >"$dir/pair" || exit 1
raw=$(sed -n 's/^raw_us //p' "$dir/pair")
ours=$(sed -n 's/^ours_us //p' "$dir/pair")
kazoo=$("$python" - "$h" <<'PY'
import sys
import time
from kazoo.client import KazooClient
k = KazooClient(sys.argv[1])
k.start()
best = 1e9
for _ in range(4):
    start = time.monotonic()
    for _ in range(300):
        lock = k.Lock('/kazoo/pair')
        lock.acquire()
        lock.release()
    best = min(best, (time.monotonic() - start) / 300)
print('%.1f' % (best * 1e6))
k.stop()
PY
)
row 'zookeeper: raw create + delete' "$raw" '' us
row 'zookeeper: acquire + release' "$ours" '' us
row 'zookeeper: acquire + release / raw' "$(ratio "$ours" "$raw")" '<= 1.15' x
row "zookeeper: kazoo's Lock" "$kazoo" '' us
row "zookeeper: kazoo's Lock / acquire + release" "$(ratio "$kazoo" "$ours")" '>= 1.5' x

for waiters in 10 200; do
    mkfifo "$dir/in$waiters" "$dir/out$waiters"
    "$dir/bench" line "$h" $waiters <"$dir/in$waiters" >"$dir/out$waiters" &
    exec 5>"$dir/in$waiters" 6<"$dir/out$waiters"
    read -r _ <&6
    before=$(metric sum_node_deleted_watch_count)
    echo >&5
    read -r us <&6
    after=$(metric sum_node_deleted_watch_count)
    echo >&5
    exec 5>&- 6<&-
    wait $!
    row "zookeeper: hand-over, $waiters waiters" "$us" '' us
    row "zookeeper: clients woken per release, $waiters waiters" \
        "$(ratio $((after - before)) $waiters)" '<= 1' x
done
