#!/bin/bash
# halfopen.t - a firewall has lost its state: the connections to all nodes are dead and nobody is told,
# new ones work. No lease is lost then.
# run: first
# run: threads
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"

url=
for i in 1 2 3 4 5; do away "f$i" "$i"; done
url=redlock://$url

holders one "$url" 1 10000
holders eight "$url" 8 10000
is "$(cat "$dir"/*.out)" 'held
held' 'one thread, and eight of another process, hold a lock each'
for i in 1 2 3 4 5; do half_open "$i"; done
sleep 15
for i in 1 2 3 4 5; do half_open "$i"; done
sleep 15
is "$(holders_lost one)" 'lost 0 of 1' 'the one lost nothing, with every connection lost twice'
is "$(holders_lost eight)" 'lost 0 of 8' 'nor did the eight'

# With a majority of the nodes as before, and a ttl that leaves no time to be wrong for long.
client c "$url"
ask c acquire 1 short 1000 0 kept
half_open 1
half_open 2
sleep 3
ask c lost 1
like "$answer" 'ok 0 *' 'two of five: a short lease is kept'
for i in 3 4 5; do half_open "$i"; done
sleep 3
ask c lost 1
like "$answer" 'ok 0 *' 'the other three: likewise'
ask c release 1
is "$answer" ok 'and released'
done_testing
