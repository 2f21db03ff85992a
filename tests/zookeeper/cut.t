#!/bin/bash
# Connections cut at random points of a million bytes of traffic.
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=4000
seed=${SEED-$RANDOM}
mkfifo "$dir/in" "$dir/out"
python3 "$root/tests/zookeeper/cutter.py" "${server_port[a]}" "$seed" <"$dir/in" >"$dir/out" &
exec 5>"$dir/in" 6<"$dir/out"
read -r port <&6
echo "# SEED=$seed"
bytes() { echo >&5 && read -r total cuts <&6; }

workers=()
for i in 1 2 3; do
    "$build/tests/zookeeper/tool_counter" "zookeeper://127.0.0.1:$port/cut" counter "$dir/counter" 30 2000 \
        >"$dir/worker$i" 2>&1 &
    workers+=($!)
done
sum=0
for i in 1 2 3; do
    wait "${workers[i - 1]}"
    ok $? "worker $i saw no token twice and was never overtaken: $(tail -n 1 "$dir/worker$i")"
    sum=$((sum + $(sed -n 's/^counted \([0-9]*\) .*/\1/p' "$dir/worker$i")))
done
bytes
is "$sum" "$(sed 's/.* 0*//' "$dir/counter")" "no increment was lost in $total bytes and $cuts cuts"
[ "$cuts" -gt 10 ] && [ "$total" -gt 1000000 ]
ok $? 'a million bytes, and many cuts'
# Nothing is left behind: every child that a cut might have orphaned is gone.
left=$("$holdfast" --store "zookeeper://$(hosts a)/cut" list 2>&1 | grep -c counter)
is "$left" 0 'no child is left'
exec 5>&- 6<&-
done_testing
