#!/bin/bash
# Connections are cut at random points of a million bytes of traffic, while workers count under a
# lock, with a fence.
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
proxy_start p a
seed=${STORM_SEED:-$RANDOM}
echo "# STORM_SEED=$seed"
proxy p mode chaos "$seed"
total=0
for round in 1 2 3 4; do
    workers 3 "$(url p)" 10 "storm$round"
    workers_end "storm$round" "round $round"
    proxy p bytes
    total=$proxied
    [ "$total" -lt 1000000 ] || break
done
above "$total" 1000000 'a million bytes went through'
proxy p mode pass
client c "$(url a)"
ask c acquire 1 storm1 5000 20000
like "$answer" 'ok *' 'the lock is free in the end'
ask c release 1
eventually 15 eval '[ "$(keys a)" = 0 ]'
ok $? 'and nothing stays behind'
done_testing
