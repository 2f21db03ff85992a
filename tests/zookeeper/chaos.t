#!/bin/bash
# Connections cut at random points of a million bytes of traffic, and a fenced counter behind them.
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=4000
proxy_start p a
proxy p mode chaos 15000
count_bytes() {
    proxy p bytes
    [ "$proxied" -gt 1000000 ]
}

counters_start 3 "zookeeper://$(hosts p)/cut?tick=200ms" 60 2000
eventually 60 count_bytes
ok $? "a million bytes went through ($proxied)"
counters_stop
counters_end 'cut at random'
proxy p cuts
above "$proxied" 20 'there were many cuts'
# Nothing is left behind: every child that a cut might have orphaned goes, with its session at the latest.
empty() { [ "$("$hf" --store "zookeeper://$(hosts a)/cut" list 2>&1 | grep -c counter)" -eq 0 ]; }
eventually 20 empty
ok $? 'no child is left'
done_testing
