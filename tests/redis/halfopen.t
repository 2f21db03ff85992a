#!/bin/bash
# halfopen.t - a firewall has lost its state: connections that stand are dead and nobody is told, new
# ones work. No lease is lost then, and no address that swallows everything is in the way.
# run: threads
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"

cable far 4
server_wrap=$far
server_cli='-h 10.9.4.2'
redis_start far --bind 10.9.4.2 --protected-mode no
server_wrap=
id=$(rcli far -h 10.9.4.2 info replication | tr -d '\r' | sed -n 's/^master_replid://p')
rcli far -h 10.9.4.2 set holdfast:inc "$id 1 1 60000" >/dev/null
store=redis://10.9.4.2:$(port far)

holders eight "$store" 8 10000
is "$(cat "$dir/eight.out" "$dir/eight.err")" held 'eight threads hold a lock each'
half_open 4
sleep 25
is "$(holders_lost eight)" 'lost 0 of 8' 'no lease is lost although every connection was'

# A name with two addresses, the first of which swallows everything.
black_hole 4
name_addresses two.holdfast.test 10.9.4.3 10.9.4.2
is "$(getent ahostsv4 two.holdfast.test | awk '/STREAM/ { print $1 }' | tr '\n' ' ')" '10.9.4.3 10.9.4.2 ' \
    'the black hole comes first'
client c "redis://two.holdfast.test:$(port far)"
is "$answer" ok 'it is passed over'
ask c acquire 1 x 10000 0
like "$answer" 'ok *' 'and a lock taken'
ask c release 1
name_addresses none.holdfast.test 10.9.4.3
client d "redis://none.holdfast.test:$(port far)"
like "$answer" 'HF_UNREACHABLE*in time*' 'where there is nothing else it is out of reach'
done_testing
