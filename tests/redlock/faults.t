#!/bin/bash
# faults.t - any two of five real servers killed, frozen or cut off, while clients lock and add to a
# fenced counter: nothing is lost, the lock stays available, never two valid leases.
# run: once
set -u
. "$(dirname "$0")/lib.sh"

nodes 5 3000
proxy_start p5 n5
proxy_start p4 n4
url=$(redlock '?max_ttl=3s' n1 n2 n3 p4 p5)
"$build/tests/redlock/tool_counter" "$url" 4 20 >"$dir/result" 2>"$dir/errors" &
counter=$!

# again NAME... : the servers once more; they forgot everything, and must not vote for three seconds
again() {
    local name
    for name in "$@"; do redis_again "$name"; done
}
keys_before=$(rcli n1 dbsize)
sleep 1
kill -STOP "$(pid n1)" "$(pid n2)"
sleep 2.5
kill -CONT "$(pid n1)" "$(pid n2)"
sleep 0.5
redis_stop n3 KILL
redis_stop n2 KILL
sleep 1
again n3 n2
sleep 5 # quarantine
proxy p5 mode deaf
proxy p4 mode mute
sleep 2.5
proxy p5 mode pass
proxy p4 mode pass
sleep 0.5
kill -STOP "$(pid n1)"
redis_stop n5 KILL
sleep 2
kill -CONT "$(pid n1)"
wait "$counter"
read -r _ value _ admitted _ stale _ disorder _ overlaps _ grants _ refusals _ gap _ last <"$dir/result"
answer=$(cat "$dir/result" "$dir/errors")
echo "# $answer; keys at the start: $keys_before"
above "${grants:-0}" 200 'the lock went around all the time'
is "$value" "$admitted" 'no update was lost'
is "$overlaps" 0 'there were never two valid leases'
is "$disorder" 0 'tokens followed the order of holding'
[ "${gap:-99999}" -lt 10000 ]
ok $? "the longest time without a grant was ${gap} ms"
[ "${last:-99999}" -lt 10000 ]
ok $? "and it was granted to the end (${last} ms)"
above "$((stale + refusals + 1))" 0 "there were $stale stale writes and $refusals refusals"
done_testing
