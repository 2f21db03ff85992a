#!/bin/bash
# links.t - a firewall has lost its state: connections that stand are dead and nobody is told, new
# ones work. No lease is lost then.
# run: threads
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"

far_redis far 4
store=redis://10.9.4.2:$(port far)

holders eight "$store" 8 10000
is "$(cat "$dir/eight.out" "$dir/eight.err")" held 'eight threads hold a lock each'
half_open 4
sleep 25
is "$(holders_lost eight)" 'lost 0 of 8' 'no lease is lost although every connection was'
done_testing
