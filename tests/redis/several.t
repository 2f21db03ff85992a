#!/bin/bash
# several.t - several locks at once in Redis: one connection for all queues, one round trip for all tries.
# run: also long
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

redis_start a
calm a
several "$(url a)" 2000 500
is "$(rcli a keys 'holdfast:*:[qw]*' | grep -c pool)" 0 'no queue is left'

# One of 8 with 7 held: one request takes it.
for i in 0 1 2 3 4 5 6; do
    "$hf" --store "$(url a)" acquire --ttl 1m --slots 8 --slot "$i" gpu >/dev/null
done
requests() { rcli a info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
client c "$(url a)"
before=$(requests)
ask c any 1 0 gpu#0 gpu#1 gpu#2 gpu#3 gpu#4 gpu#5 gpu#6 gpu#7
like "$answer" 'ok * gpu#7' 'the one that is free'
is "$(($(requests) - before))" 1 'takes one request'
ask c any 2 0 gpu#0 gpu#1 gpu#2 gpu#3 gpu#4 gpu#5 gpu#6 gpu#7
like "$answer" 'HF_BUSY*' 'none is free any more'
is "$(($(requests) - before))" 2 'and one more to find that out'

# Fifty who wait in 8 queues each.
connections() { rcli a info clients | tr -d '\r' | sed -n 's/^connected_clients://p'; }
waiting() { [ "$(rcli a zcard 'holdfast:{gpu#0}:q')" -ge "$1" ]; }
waiters=()
for i in $(seq 50); do
    # Quietly: who tells for whom it waits asks on a connection of its own.
    "$hf" --store "$(url a)" run --skip-ok --slots 8 gpu -- true >/dev/null 2>&1 &
    waiters+=($!)
done
eventually 30 waiting 50
ok $? '50 processes wait in 8 queues each'
above 61 "$(connections)" 'they have 60 connections at the most'
for i in "${waiters[@]}"; do
    kill "$i"
done
wait "${waiters[@]}"
is "$(rcli a zcard 'holdfast:{gpu#3}:q')" 0 'told to end, they leave every queue'
done_testing
