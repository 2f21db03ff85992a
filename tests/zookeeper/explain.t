#!/bin/bash
# holdfast explain on ZooKeeper: who waits, in order.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=40000
explain_queue "zookeeper://$(hosts a)?tick=200ms" \
    '.holder.seems == "alive" and .holder.renewed != null and .holder.token_time == null'

# A break is a write of somebody else's: it does not make a frozen holder look alive.
"$hf" run --ttl 9s --label frozen ice -- sleep 600 2>"$dir/ice.err" &
ice=$!
eventually 20 seen ice .held
kill -STOP "$ice"
"$hf" break ice --token "$(jq .holder.token "$dir/out")" --reason 'it hangs' >"$dir/broke"
like "$(cat "$dir/broke")" '*: its job is told within 10s; the lock passes on when it is gone, or when its time is over' \
    'how long that may take ZooKeeper does not tell'
seen ice '.broken.reason == "it hangs" and .holder.seems == "unknown" and .holder.renewed == null'
ok $? 'a break is no renewal'
fits_schema "$dir/out"
ok $? 'as the schema says'
like "$("$hf" explain ice)" '*next       It was broken: its holder ends its work and releases it, and the lock is free.' \
    'and what happens next'
kill -KILL "$ice"

# Somebody's node that no session owns.
kazoo a 'k.create("/holdfast/stuck/theirs__lock__0000000001", b"them", makepath=True)' >"$dir/put"
seen stuck '.holder.foreign and .holder.endless and .holder.token == null and .next == {"what": "never", "in_ms": null}'
ok $? 'a node that no session owns never ends'
fits_schema "$dir/out"
ok $? 'as the schema says'
timeout 10 "$hf" run -w 2s stuck -- true 2>"$dir/err"
like "$(cat "$dir/err")" '*whose key has no ttl: this never ends by itself*' 'and the line of a run that waits says so'
done_testing
