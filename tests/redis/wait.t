#!/bin/bash
# A server that stands still for a while: whoever waits goes on waiting, and nothing is left behind.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
client h "$(url a)"
ask h acquire 1 x 60000 0
like "$answer" 'ok *' 'one holds'
for w in 1 2 3; do
    client "w$w" "$(url a)"
    tell "w$w" acquire 1 x 20000 90000
done
"$hf" --store "$(url a)" run -w 90s x -- true 2>"$dir/run" &
runner=$!
eventually 20 eval '[ "$(rcli a zcard "holdfast:{x}:q")" = 4 ]'
ok $? 'four wait'
kill -STOP "$(pid a)"
sleep 15 # longer than a request may take, and than a second try of it
kill -CONT "$(pid a)"
kill -0 "$runner"
ok $? 'a run that waits outlives a freeze of 15 seconds'
ask h release 1
is "$answer" ok 'the holder is not harmed'
got=0
for w in 1 2 3; do
    hear "w$w" 60
    [[ $answer == ok* ]] && got=$((got + 1))
    ask "w$w" release 1
done
is "$got" 3 'so do those who wait by the library'
wait "$runner"
is $? 0 'and the run has its turn'
eventually 10 eval '[ "$(rcli a exists x "holdfast:{x}:q" "holdfast:{x}:w")" = 0 ]'
ok $? 'nobody is left in the queue, and nobody holds'
done_testing
