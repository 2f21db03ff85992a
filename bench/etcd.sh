#!/bin/bash
# etcd.sh - the etcd store against bare requests and etcdctl, on one server of its own, in one run.
# Prints rows as bench/run.sh wants them. BUILD is the folder of the build.
# shellcheck disable=SC2154 # hf comes from lib.sh
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/etcd/lib.sh
. bench/rows.sh
bench=$build/bench/bench_etcd

etcd_start a
endpoint=http://127.0.0.1:$(port a)
lease=$(ctl a lease grant 600 | sed 's/^lease \([0-9a-f]*\) .*/\1/')
"$bench" pair "$(url a)" "$endpoint" $((16#$lease)) >"$dir/pair" || exit 1
value() { sed -n "s/^$1 //p" "$dir/$2"; }
row 'etcd: raw JSON transaction + delete' "$(value raw_us pair)" - us
row 'etcd: acquire + release' "$(value ours_us pair)" - us
row 'etcd: acquire + release against raw' "$(value ratio pair)" '<=1.1' x

# Whole processes, one of each in turn.
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)
"$bench" turns 41 "$hf" run -n job -- true + etcdctl --endpoints "$endpoint" lock job true \
    >"$dir/turns" || exit 1
row 'etcd: etcdctl lock NAME true' "$(value second_us turns)" - us
row 'etcd: holdfast run NAME -- true' "$(value first_us turns)" - us
row 'etcd: holdfast run against etcdctl lock' "$(value ratio turns)" '<=0.6' x
# The least that any process can do with libcurl: load it, then three requests and no command.
"$bench" turns 41 "$bench" bare "$endpoint" + etcdctl --endpoints "$endpoint" lock job true \
    >"$dir/turns" || exit 1
row 'etcd: three bare requests, whole process' "$(value first_us turns)" - us
row 'etcd: three bare requests against etcdctl lock' "$(value ratio turns)" - x

# A line of waiters: how many clients hear of each release. etcd counts the events it sends.
waiters=200
events() { curl -s "$endpoint/metrics" | sed -n 's/^etcd_debugging_mvcc_events_total //p'; }
waiting() { "$hf" status --json line | grep -o '"waiters": *[0-9]*' | grep -o '[0-9]*$'; }
"$hf" run line -- sleep 600 &
holder=$!
eventually 10 eval '[ "$(keys a)" = 1 ]'
"$bench" wait "$(url a)" line $waiters >"$dir/tokens" &
line=$!
eventually 60 eval '[ "$(waiting)" = $waiters ]' || echo 'bench: the waiters did not line up' >&2
sleep 3
before=$(events)
start=$(date +%s%N)
kill -TERM $holder
wait $line
end=$(date +%s%N)
after=$(events)
wait $holder 2>/dev/null
row "etcd: hand-over with $waiters waiters" $(((end - start) / waiters / 1000)) - us
row "etcd: clients woken per release, $waiters waiters" "$(ratio $((after - before)) $waiters)" '<=1' x
row "etcd: $waiters hand-overs in order of their tokens" \
    "$(sort -nc "$dir/tokens" 2>/dev/null && wc -l <"$dir/tokens")" "=$waiters" holds
