#!/bin/bash
# etcd.sh - the etcd store against bare requests and etcdctl. Rows as bench/run.sh wants them.
set -u
. "$(dirname "$0")/../tests/etcd/lib.sh"
cd "$root" || exit 1
if ! cc -std=c11 -D_GNU_SOURCE -O2 -Iinclude -Isrc -Ibench -o "$dir/bench" bench/etcd_client.c \
    "$build/libholdfast.a" -pthread -ldl -lcurl; then
    echo 'bench: cannot build etcd_client.c' >&2
    exit 1
fi

etcd_start a
endpoint=http://127.0.0.1:$(port a)
lease=$(ctl a lease grant 600 | sed 's/^lease \([0-9a-f]*\) .*/\1/')
"$dir/bench" pair "$(url a)" "$endpoint" $((16#$lease))

# Whole processes, in turn, the median of each.
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)
rounds=41
rm -f "$dir/ours" "$dir/theirs"
for _ in $(seq $rounds); do
    start=$(date +%s%N)
    "$hf" run -n job -- true
    middle=$(date +%s%N)
    etcdctl --endpoints "$endpoint" lock job true
    end=$(date +%s%N)
    echo $((middle - start)) >>"$dir/ours"
    echo $((end - middle)) >>"$dir/theirs"
done >/dev/null
median() { sort -n "$1" | sed -n "$((rounds / 2 + 1))p"; }
awk -v ours="$(median "$dir/ours")" -v theirs="$(median "$dir/theirs")" 'BEGIN {
    printf "etcd: etcdctl lock NAME true\t%.2f\t\tus\t\n", theirs / 1000
    printf "etcd: holdfast run NAME -- true\t%.2f\t\tus\t\n", ours / 1000
    printf "etcd: holdfast run against etcdctl lock\t%.2f\t<= 0.6\tx\t%s\n", ours / theirs,
        ours <= 0.6 * theirs ? "ok" : "MISS" }'

# A line of waiters: how many clients hear of each release. etcd counts the events it sends.
waiters=200
events() { curl -s "$endpoint/metrics" | sed -n 's/^etcd_debugging_mvcc_events_total //p'; }
"$hf" run line -- sleep 600 &
holder=$!
eventually 10 eval '[ "$(keys a)" = 1 ]'
"$dir/bench" wait "$(url a)" line $waiters >"$dir/tokens" &
line=$!
eventually 60 eval '[ "$("$hf" status --json line | grep -o "\"waiters\": *[0-9]*" | grep -o "[0-9]*$")" = $waiters ]' ||
    echo 'bench: the waiters did not line up' >&2
sleep 3
before=$(events)
start=$(date +%s%N)
kill -TERM $holder
wait $line
end=$(date +%s%N)
after=$(events)
wait $holder 2>/dev/null
awk -v events=$((after - before)) -v waiters=$waiters -v ns=$((end - start)) \
    -v sorted="$(sort -nc "$dir/tokens" 2>/dev/null && wc -l <"$dir/tokens")" 'BEGIN {
    printf "etcd: hand-over with %d waiters\t%.2f\t\tus\t\n", waiters, ns / waiters / 1000
    printf "etcd: clients woken per release, %d waiters\t%.2f\t<= 1\t\t%s\n", waiters,
        events / waiters, events <= waiters ? "ok" : "MISS"
    printf "etcd: %d hand-overs in order of their tokens\t%d\t>= %d\t\t%s\n", waiters, sorted, waiters,
        sorted == waiters ? "ok" : "MISS" }'
