#!/bin/bash
# faults.t - any two of five real servers killed, frozen or cut off, while clients lock and add to a
# fenced counter: nothing is lost, the lock stays available, never two valid leases.
# run: once
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

nodes 5 3000
proxy_start p5 n5
proxy_start p4 n4
url=$(redlock '?max_ttl=3s' n1 n2 n3 p4 p5)
counters_start 4 "$url" 60 2000

# value : what the counter says
value() { local value=0; read -r _ value _ <"$dir/counter"; echo "$((10#${value:-0}))"; }
more() { [ "$(value)" -gt "$1" ]; }
# goes_on DESCRIPTION : it is granted, with things as they are now
goes_on() {
    local before
    before=$(value)
    eventually 20 more "$((before + 20))"
    ok $? "$1"
}

goes_on 'all five: the lock goes around'
kill -STOP "$(pid n1)" "$(pid n2)"
goes_on 'two frozen: it goes around'
sleep 2.5 # longer than a ttl
kill -CONT "$(pid n1)" "$(pid n2)"
goes_on 'two woke up and know nothing of the time between'
redis_stop n3 KILL
redis_stop n2 KILL
goes_on 'two killed'
redis_again n3
redis_again n2
goes_on 'two are there again and have forgotten everything: they must not vote'
sleep 4 # quarantine
proxy p5 mode deaf
proxy p4 mode mute
goes_on 'two cut off, one in each direction'
sleep 2.5
proxy p5 mode pass
proxy p4 mode pass
goes_on 'and back'
kill -STOP "$(pid n1)"
redis_stop n5 KILL
goes_on 'one frozen, one killed'
sleep 2
kill -CONT "$(pid n1)"
goes_on 'one woke up'
counters_stop
counters_end 'to the end'
above "$counted" 150 'it went around'
is "$overlaps" 0 'there were never two valid leases'
[ "$gap_ms" -lt 20000 ]
ok $? "the longest time without a hold was $gap_ms ms"
done_testing
