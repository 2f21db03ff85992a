#!/bin/bash
# `holdfast once --per` on Redis with `appendfsync always`: five servers at each border, killed, frozen, late and
# a little apart, while Redis is restarted; and all five while it is down, or in quarantine.
# run: also long
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that others use by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/once_storm.sh"

redis_start disk --appendonly yes --appendfsync always
calm disk 3000
url=$(url disk '?max_ttl=3s')
restart() { # away for a moment, in the middle of it all
    sleep "$((RANDOM % 5 + 3)).$((RANDOM % 10))"
    redis_stop disk KILL
    sleep "0.$((RANDOM % 3))"
    redis_again disk || echo '# the server did not start again'
}
storm_fault=restart
once_storm 'restarts' "$url" keys=4 slots=4 period=10 skew=69 slack=104 ttl=3000 start=60
storm_fault=
redis_stop disk
timeout 20 "$hf" --store "$url" once -n down -- true 2>"$dir/words"
is $? 69 'down, -n: 69 at once'
timeout 20 "$hf" --store "$url" once -w 1s --per 1d down -- true 2>"$dir/words"
is $? 69 'down, -w: 69 in the end'
like "$(cat "$dir/words")" '*waiting for at most*' 'down, -w: and says that it waits'
"$hf" --store "$url" once term -- true 2>"$dir/words.term" &
waiter=$!
eventually 10 grep -qs waiting "$dir/words.term"
kill -TERM $waiter
wait $waiter
is $? 143 'down: a signal ends the wait'
once_waits 'down' "$url" 'redis_again disk'
redis_stop disk KILL
redis_again disk
once_waits 'quarantine' "$url" true
redis_stop disk
redis_start memory
calm memory 3000
"$hf" --store "$(url memory '?max_ttl=3s')" once kept -- true 2>"$dir/words"
is $? 0 'without persistence it runs as well'
like "$(cat "$dir/words")" '*warning*' 'and says that the record may be forgotten'
done_testing
