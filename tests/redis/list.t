#!/bin/bash
# A listing on a server that is full of other things: it takes its time, and leaves the server to others.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
client c "$(url a)"
for i in 1 2 3; do ask c acquire "$i" "job$i" 60000 0; done
rcli a debug populate 200000 other 10 >/dev/null
rcli a config resetstat >/dev/null
now_us() { echo $(($(date +%s%N) / 1000)); }
start=$(now_us)
"$hf" --store "$(url a)" list >"$dir/list" 2>&1
is $? 0 'a listing among many other keys'
took=$(($(now_us) - start))
is "$(grep -c '^job[123] ' "$dir/list")" 3 'finds what there is'
stat=$(rcli a info commandstats | tr -d '\r')
cost=$(sed -n 's/^cmdstat_scan:calls=[0-9]*,usec=\([0-9]*\),.*/\1/p' <<<"$stat")
calls=$(sed -n 's/^cmdstat_scan:calls=\([0-9]*\),.*/\1/p' <<<"$stat")
echo "# $calls steps, $cost us of the server in $took us"
above "$took" $((cost * 2)) 'it leaves the server more than half of the time'
above "$calls" 500 'in steps that keep nobody waiting for long'
done_testing
