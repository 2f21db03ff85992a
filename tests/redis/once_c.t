#!/bin/bash
# Programs over holdfast/once.h on Redis with `appendfsync always`: five at each border, killed, frozen, late and a
# little apart, while Redis is restarted; and all five while it is down, or in quarantine.
# run: long
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that others use by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/once_storm.sh"

redis_start disk --appendonly yes --appendfsync always
calm disk 3000
restart() { # away for a moment, in the middle of it all
    sleep "$((RANDOM % 5 + 3)).$((RANDOM % 10))"
    redis_stop disk KILL
    sleep "0.$((RANDOM % 3))"
    redis_again disk || echo '# the server did not start again'
}
storm_fault=restart
once_program=$build/tests/tools/tool_once
once_storm 'restarts' "$(url disk '?max_ttl=3s')" keys=4 slots=4 period=10 skew=69 slack=104 ttl=3000 start=60
storm_fault=
redis_stop disk
once_waits 'down' "$(url disk '?max_ttl=3s')" 'redis_again disk'
# The store goes down when it is open already.
stopped() { grep -q '^State:.T' "/proc/$one/status"; }
TOOL_ONCE_OPEN=1 "$once_program" --store "$(url disk '?max_ttl=3s')" once later -- true 2>"$dir/words" &
one=$!
eventually 10 stopped
redis_stop disk KILL
kill -CONT "$one"
sleep 1
redis_again disk
wait "$one"
is $? 0 'down when it is to begin: it is waited for'
redis_stop disk KILL
redis_again disk
once_waits 'quarantine' "$(url disk '?max_ttl=3s')" true
done_testing
