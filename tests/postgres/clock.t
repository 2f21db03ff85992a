#!/bin/bash
# The server's clock jumps by an hour, forward and back. Exclusion may lapse with a step, because the
# server ends holds by that clock; the order of tokens may not.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

library=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$library" ] || skip_all 'libfaketime is not installed'
step() { echo "$1" >"$dir/clock.new" && chmod 644 "$dir/clock.new" && mv "$dir/clock.new" "$dir/clock"; }
server_time() { sql a 'SELECT floor(extract(epoch FROM clock_timestamp()))'; }

step +0
server_wrap="env LD_PRELOAD=$library FAKETIME_TIMESTAMP_FILE=$dir/clock FAKETIME_NO_CACHE=1 \
DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_RESET=1"
pg_start a 'autovacuum=off'
client c "$(url a '?max_ttl=20s')"
client d "$(url a '?max_ttl=20s')"
ask c acquire 1 x 5000 0
last=$(token)
ask c release 1
real=$(server_time)

step +3600
above "$(server_time)" $((real + 3000)) 'the server is an hour ahead now'
for round in 1 2 3; do
    ask d acquire 1 x 5000 0
    above "$(token)" "$last" "ahead, round $round: the token rises"
    last=$(token)
    ask d release 1
    is "$answer" ok 'released'
done
step -3600
above $((real - 3000)) "$(server_time)" 'the server is an hour behind now'
for round in 1 2 3; do
    ask c acquire 1 x 5000 0
    above "$(token)" "$last" "behind, round $round: the token rises"
    last=$(token)
    ask c release 1
    is "$answer" ok 'released'
done

# a holder dies, and the clock goes back: its hold does not last an hour
step +0
client h "$(url a '?max_ttl=20s')"
ask h acquire 1 x 3000 0
last=$(token)
gone h
step -3600
ask d acquire 1 x 5000 30000
above "$(token)" "$last" 'a dead holder goes in time although the clock went back'
last=$(token)

# a queue over a step
step +0
ask d release 1
ask c acquire 1 x 20000 0
last=$(token)
tell d acquire 1 x 20000 40000
eventually 10 waiting a x 1
step +3600
ask c release 1
like "$answer" '[oH]*' 'the holder of before the step is answered, one way or the other'
hear d
above "$(token)" "$last" 'the waiter gets it, with a larger token'
done_testing
