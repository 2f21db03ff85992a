#!/bin/bash
# holdfast torture on a Redis of the user's own.
# shellcheck disable=SC2317 # a function that is used by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

redis_start a
"$hf" --store "$(url a)" torture --for 1s >"$dir/out" 2>"$dir/err"
is $? 69 'a server in quarantine is not tortured'
like "$(cat "$dir/err")" '*may have forgotten a lock*' 'and says why'
calm a
rcli a set mine 1 >/dev/null
tortures "$(url a '?max_ttl=60s')"
is "$(rcli a keys '*' | sort | tr '\n' ' ')" 'holdfast:inc mine ' 'what was there before is there, and no more'
like "$(rcli a get holdfast:inc)" '* 60000*' 'the max_ttl that clients agreed on is as it was'
left() { rcli a keys '*' | grep -v '^holdfast:inc$\|^mine$'; }
torture_killed "$(url a '?max_ttl=60s')" left
# A server that grants less than a torture would want.
redis_start b
calm b 1000
"$hf" --store "$(url b '?max_ttl=1s')" torture --for 2s --kill --json >"$dir/torture"
reports '.ttl_ms == 1000' 'the ttl is what the store grants'
done_testing
