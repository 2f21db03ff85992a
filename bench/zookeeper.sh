#!/bin/bash
# zookeeper.sh - the ZooKeeper store beside the raw library and kazoo's Lock, on one server of its own,
# in one run. The server forces every write to the disk, as servers do. Rows as rows.sh prints them.
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/rows.sh
. tests/zookeeper/lib.sh
bench=$build/bench/bench_zookeeper
# shellcheck disable=SC2034 # zk_launch uses both
java_options='-Dzookeeper.forceSync=yes' java_compiler=
zk_start a maxSessionTimeout=60000 tickTime=2000
h=$(hosts a)

metric() {
    exec 4<>"/dev/tcp/127.0.0.1/$(port a)" && printf mntr >&4
    sed -n "s/^zk_$1[[:space:]]//p" <&4
}

# kazoo takes its turns when it is told to.
mkfifo "$dir/turn" "$dir/time"
/usr/bin/python3 bench/zookeeper_peer.py "$h" <"$dir/turn" >"$dir/time" &
"$bench" pair "$h" 3>"$dir/turn" <"$dir/time" >"$dir/pair" || exit 1
wait $!
fact() { sed -n "s/^$1 //p" "$dir/pair"; }
row 'zookeeper: raw create + delete' "$(fact raw_us)" - us
row 'zookeeper: acquire + release' "$(fact ours_us)" - us
row 'zookeeper: acquire + release / raw' "$(fact ours_per_raw)" '<=1.15' x
row "zookeeper: kazoo's Lock" "$(fact kazoo_us)" - us
row "zookeeper: kazoo's Lock / acquire + release" "$(fact kazoo_per_ours)" '>=1.5' x

for waiters in 10 200; do
    mkfifo "$dir/in$waiters" "$dir/out$waiters"
    "$bench" line "$h" $waiters <"$dir/in$waiters" >"$dir/out$waiters" &
    exec 5>"$dir/in$waiters" 6<"$dir/out$waiters"
    read -r _ <&6
    before=$(metric sum_node_deleted_watch_count)
    echo >&5
    read -r us <&6
    after=$(metric sum_node_deleted_watch_count)
    echo >&5
    exec 5>&- 6<&-
    wait $!
    row "zookeeper: hand-over, $waiters waiters" "$us" - us
    row "zookeeper: clients woken per release, $waiters waiters" \
        "$(ratio $((after - before)) $waiters)" '<=1' x
done
