#!/bin/bash
# holdfast explain on ZooKeeper: who waits, in order.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=40000
HOLDFAST_STORE="zookeeper://$(hosts a)?tick=200ms"
waiters=()
export HOLDFAST_STORE
"$hf" run --label first job -- sleep 600 2>/dev/null &
holder=$!
seen() { "$hf" explain job --json >"$dir/out" && jq -e "$1" "$dir/out" >/dev/null; }
eventually 20 seen '.held'
for label in second third; do
    "$hf" run -w 60s --label $label job -- true 2>/dev/null &
    waiters+=($!)
    eventually 20 seen ".queue[-1].label == \"$label\""
done
seen '[.queue[].label] == ["second", "third"] and [.queue[].place] == [1, 2]'
ok $? 'who waits, in order'
seen '.waiters == 2 and .holder.label == "first" and .holder.seems == "alive" and .holder.renewed != null'
ok $? 'and who holds it, and seems alive'
seen '.holder.token > 0 and .holder.token_time == null'
ok $? 'its token is no time'
fits_schema "$dir/out"
ok $? 'as the schema says'
"$hf" explain job >"$dir/out"
like "$(golden <"$dir/out")" '*1. second, for SPAN
    2. third, for SPAN*and second has the lock.' 'and who is next'
kill -TERM "$holder" "${waiters[@]}"
done_testing
