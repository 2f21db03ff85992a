#!/bin/bash
# Leases kept alive together: renewed with a few round trips, each lost on its own.
# shellcheck disable=SC2317 # functions that eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400
proxy_start p a
client c "zookeeper://$(hosts p)?tick=200ms"
for i in $(seq 1 60); do
    ask c acquire "$i" "k$i" 3000 0 kept
done
like "$answer" 'ok *' 'sixty leases'
proxy p trips
sleep 5
proxy p trips
[ "$proxied" -gt 0 ] && [ "$proxied" -lt 150 ]
ok $? "five renewals of each: far fewer round trips ($proxied)"
lost=0
for i in $(seq 1 60); do
    ask c lost "$i"
    [[ $answer == 'ok 0 '* ]] || lost=$((lost + 1))
done
is "$lost" 0 'none was lost after more than a ttl'

is_lost() { ask c lost "$1"; [[ $answer != 'ok 0 '* ]]; }
kazoo a "k.delete('/holdfast/k7/' + k.get_children('/holdfast/k7')[0])"
eventually 10 is_lost 7
like "$answer" '*operator broke*' 'one whose child was deleted is lost, and why'
ask c lost 8
like "$answer" 'ok 0 *' 'its neighbours are not'

# Cut off for a moment: a renewal that finds no connection is tried again in time.
proxy p mode drop
proxy p once
sleep 4
lost=0
for i in $(seq 8 60); do
    is_lost "$i" && lost=$((lost + 1))
done
is "$lost" 0 'a connection that ends costs none of them'
zk_stop a KILL
eventually 15 is_lost 8
like "$answer" '*could not be reached*' 'without a server all are lost at their deadline'
done_testing
