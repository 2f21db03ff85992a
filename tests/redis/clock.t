#!/bin/bash
# The server's clock jumps by an hour, forward and back. Exclusion may lapse with a step, because the
# server expires keys by that clock; the order of tokens may not.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

server_hour() { rcli a time | head -n 1; }

stepping_clock
redis_start a
calm a
client c "$(url a)"
client d "$(url a)"
ask c acquire 1 x 5000 0
last=$(token)
ask c release 1
real=$(server_hour)

clock_step 3600
above "$(server_hour)" $((real + 3000)) 'the server is an hour ahead now'
for round in 1 2 3; do
    ask d acquire 1 x 5000 0
    above "$(token)" "$last" "ahead, round $round: the token rises"
    last=$(token)
    ask d release 1
    is "$answer" ok 'released'
done

clock_step -3600
[ "$(server_hour)" -lt $((real - 3000)) ]
ok $? 'the server is an hour behind now'
for round in 1 2 3; do
    ask c acquire 1 x 5000 0
    above "$(token)" "$last" "behind, round $round: the token rises"
    last=$(token)
    ask c release 1
    is "$answer" ok 'released'
done
ask c status x
is "$answer" ok 'and status can cope'

# clocks that nobody set, and one that is set wrong: tokens of fewer digits, and of more than Lua can count
now=$(date +%s)
for year in 2000 1970; do
    case $year in
    2000) clock_step $((946700000 - now)) ;;
    1970) clock_step $((10 - now)) ;;
    esac
    ask c acquire 1 x 5000 0
    above "$(token)" "$last" "in the year $year the token rises"
    last=$(token)
    ask c release 1
    is "$answer" ok 'released'
    ask c acquire 1 "new-in-$year" 5000 0
    above "$(token)" 0 'a new lock has a token'
    before=$(token)
    ask c release 1
    ask c acquire 1 "new-in-$year" 5000 0
    above "$(token)" "$before" 'and then a larger one'
    ask c release 1
done
clock_step $((9100000000 - now))
ask c acquire 1 x 5000 0
like "$answer" 'HF_CORRUPT*clock*' 'a clock beyond the year 2255 is refused'
is "$(rcli a exists x)" 0 'and takes nothing'
clock_step 0
for digits in 10000000000000000 1000000000000000000; do
    rcli a set 'holdfast:{many}:t' "$digits 1 - 00 x" >/dev/null
    ask c acquire 1 many 5000 0
    like "$answer" 'HF_CORRUPT*does not hold a token*' "a record of ${#digits} digits is no token"
done
for rubbish in '' ' 1 - 00 x' '-1 1 - 00 x' '! what'; do
    rcli a set 'holdfast:{rubbish}:t' "$rubbish" >/dev/null
    ask c acquire 1 rubbish 5000 0
    like "$answer" 'HF_CORRUPT*does not hold a token*' "\"$rubbish\" is no token"
    rcli a del rubbish >/dev/null
done
clock_step -3600

# a queue over a step
ask c acquire 1 x 30000 0
last=$(token)
tell d acquire 1 x 30000 40000
eventually 5 eval '[ "$(rcli a zcard "holdfast:{x}:q")" = 1 ]'
clock_step 3600
ask c release 1
like "$answer" '[oH]*' 'the holder of before the step is answered, one way or the other'
hear d 40
above "$(token)" "$last" 'the waiter gets it, with a larger token'

# quarantine over a step back: not longer than max_ttl
redis_stop a KILL
redis_again a
client e "$(url a '?max_ttl=4s')"
ask e acquire 1 y 2000 0
like "$answer" 'HF_QUARANTINE*' 'a new incarnation'
clock_step -3600
ask e acquire 1 y 2000 20000
like "$answer" 'ok *' 'opens in time although its clock went back'
done_testing
