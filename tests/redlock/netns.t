#!/bin/bash
# netns.t - five servers, two of them on machines of their own as far as the network knows: the cable is
# pulled, nobody is told, and clients lock and count on.
# run: once
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"

nodes 3 3000
url=$(redlock '' n1 n2 n3)
away f4 4 3000 && away f5 5 3000
ok $? 'two servers at the end of cables'
counters_start 3 "$url?max_ttl=3s" 60 2000
value() { local value=0; read -r _ value _ <"$dir/counter"; echo "$((10#${value:-0}))"; }
more() { [ "$(value)" -gt "$1" ]; }
goes_on() {
    local before
    before=$(value)
    eventually 20 more "$((before + 20))"
    ok $? "$1"
}
goes_on 'the lock goes around'
unplug f4
goes_on 'one cable pulled'
unplug f5
goes_on 'both pulled'
sleep 2.5 # longer than a ttl
goes_on 'for longer than a ttl'
plug f4
plug f5
goes_on 'both plugged in again'
redis_stop n1 KILL
kill -STOP "$(pid n2)"
goes_on 'those two are needed for a majority now'
kill -CONT "$(pid n2)"
counters_stop
counters_end 'to the end'
is "$overlaps" 0 'there were never two valid leases'
done_testing
