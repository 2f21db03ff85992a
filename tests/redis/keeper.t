#!/bin/bash
# Leases kept alive together: renewed with a few pipelines, each lost on its own.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
client c "$(url a)"
for i in $(seq 1 40); do
    ask c acquire "$i" "k$i" 3000 0 kept
done
like "$answer" 'ok *' 'forty leases'
proxy_start p a
client d "$(url p)"
for i in $(seq 1 40); do
    ask d acquire "$i" "d$i" 3000 0 kept
done
proxy p trips
sleep 4
proxy p trips
[ "$proxied" -gt 0 ] && [ "$proxied" -lt 100 ]
ok $? "forty leases and four renewals of each: far fewer round trips ($proxied)"
lost=0
for i in $(seq 1 40); do
    ask c lost "$i"
    [[ $answer == 'ok 0 '* ]] || lost=$((lost + 1))
    ask d lost "$i"
    [[ $answer == 'ok 0 '* ]] || lost=$((lost + 1))
done
is "$lost" 0 'none was lost after more than a ttl'
rcli a del k7 >/dev/null
rcli a set k9 somebody px 60000 >/dev/null
is_lost() { ask c lost "$1"; [[ $answer != 'ok 0 '* ]]; }
eventually 10 is_lost 7
ok $? 'one whose key is gone is lost'
eventually 10 is_lost 9
like "$answer" '*another owner*' 'one that was taken is lost, and why'
ask c lost 8
like "$answer" 'ok 0 *' 'its neighbours are not'
rcli a script flush >/dev/null
sleep 2
ask c lost 8
like "$answer" 'ok 0 *' 'nor after the scripts were flushed'
redis_stop a KILL
eventually 15 is_lost 8
like "$answer" '*could not be reached*' 'without a server all are lost at their deadline'
done_testing
