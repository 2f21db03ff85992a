#!/bin/bash
# Connections cut at random points of a million bytes, a crash and a freeze of the server in between: a
# counter behind a fence loses nothing, and the tokens are in order.
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
client k "$(url a)"
proxy_start p a
proxy p mode chaos 15000
counters_start 8 "$(url p)" 300
through() { # BYTES
    proxy p bytes
    [ "$proxied" -gt "$1" ]
}
eventually 60 through 300000
pg_stop a QUIT
pg_again a
eventually 60 through 600000
pg_signal a STOP
sleep 4 # longer than the ttl
pg_signal a CONT
eventually 100 through 1000000
ok $? 'a million bytes went through'
proxy p cuts
above "$proxied" 20 'connections were cut'
counters_stop
counters_end 'the storm'
is "$overlaps" 0 'nobody came in while another was inside'
above "$counted" 100 'work was done'
above "$(cat "$dir"/counter.err.* | grep -c 'may have taken effect')" 0 'some of it without knowing'
proxy p mode pass
ask k acquire 1 counter 5000 20000
like "$answer" 'ok *' 'nothing is stuck afterwards'
done_testing
