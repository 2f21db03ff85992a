#!/bin/bash
# Connections are cut at random points of a million bytes of traffic, while several count under a
# lock, with a fence.
# run: once
# shellcheck disable=SC2154 # gap_ms: counters_end sets it
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
proxy_start p a
proxy p mode chaos 6000
for round in 1 2 3 4 5 6; do
    # shellcheck disable=SC2046 # nothing, or one word
    counters_start 3 "$(url p)" 6 3000 $([ $((round % 2)) = 0 ] || echo kept)
    counters_end "round $round"
    [ "$gap_ms" -lt 4000 ]
    ok $? "round $round: what was cut left nothing in the way of the others ($gap_ms ms)"
    proxy p bytes
    [ "$proxied" -lt 1000000 ] || break
done
above "$proxied" 1000000 'a million bytes went through'
proxy p cuts
above "$proxied" 50 'cut often'
proxy p mode pass
client c "$(url a)"
ask c acquire 1 counter 5000 20000
like "$answer" 'ok *' 'the lock is free in the end'
ask c release 1
eventually 15 eval '[ "$(keys a)" = 0 ]'
ok $? 'and nothing stays behind'
done_testing
