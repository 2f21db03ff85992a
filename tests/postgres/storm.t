#!/bin/bash
# Connections cut at random points of a million bytes, a crash and a freeze of the server in between: a
# counter behind a fence loses nothing, and the tokens are in order.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
client k "$(url a)"
proxy_start p a
proxy p mode chaos 15000
"$build/tests/postgres/tool_storm" "$(url p)" 8 120 "$dir/stop" >"$dir/storm" 2>"$dir/storm.err" &
storm=$!
sleep 8
pg_stop a QUIT
pg_again a
sleep 8
pg_signal a STOP
sleep 4
pg_signal a CONT
# However slow the machine is: until a million bytes went through, and the thawed server was used.
million() {
    proxy p bytes
    [ "$proxied" -gt 1000000 ]
}
sleep 3
eventually 80 million
touch "$dir/stop"
wait $storm
is "$?" 0 'the storm is over'
answer=$(cat "$dir/storm")
echo "# $answer"
head -n 5 "$dir/storm.err"
seen() { sed -n "s/.*\\b$1=\\([0-9]*\\).*/\\1/p" "$dir/storm"; }
proxy p bytes
above "$proxied" 1000000 'a million bytes went through'
proxy p cuts
above "$proxied" 20 'connections were cut'
above "$(seen holds)" 100 'and work was done'
above "$(seen unknown)" 0 'some of it without knowing'
is "$(seen lost_updates)" 0 'no update was lost'
is "$(seen overlaps)" 0 'nobody came in while another was inside'
is "$(seen repeated)" 0 'each token was above the one before'
proxy p mode pass
ask k acquire 1 storm 5000 20000
like "$answer" 'ok *' 'nothing is stuck afterwards'
done_testing
