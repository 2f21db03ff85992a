#!/bin/bash
# repair: a damaged store is refused, says what to do, and works again afterwards.
set -u
. "$(dirname "$0")/cmd.sh"

store=$dir/store
token_of() { # NAME : takes the lock for a moment
    holdfast acquire -n --ttl 100ms --json "$1" | jq .token
}
slots() { echo "$store"/slots-*; }

first=$(token_of job)
check 'a token to begin with' [ "${first:-0}" -gt 0 ]
run holdfast repair
is "$rc" 0 'a sound store: exit 0'
has "$out" 'nothing was changed' 'and it says so'

# a floor that cannot be read
printf 'holdfast floor 1 12' >"$store/floor"
rm "$(slots)"
run holdfast list
refused 69 'repair' 'a damaged floor is refused with the command that repairs it'
run holdfast acquire -n job
is "$rc" 69 'no lock is granted'
run holdfast repair --above "$first"
is "$rc" 0 'repair: exit 0'
check 'one line says what was done' [ "$(wc -l <"$dir/out")" = 1 ]
second=$(token_of job)
check 'tokens go on above the last' [ "$second" -gt "$first" ]

# a slot file full of garbage
holdfast acquire -n --ttl 1h held >/dev/null
head -c 65536 /dev/zero | tr '\0' 'x' | dd of="$(slots)" conv=notrunc status=none
run holdfast list
refused 69 'repair' 'a damaged slot file is refused'
run holdfast repair
is "$rc" 0 'repair: exit 0'
run holdfast list --json
json '. == []' 'the leases ended'
third=$(token_of job)
check 'tokens go on' [ "$third" -gt "$second" ]

# --above
far=$((third + 36000000000))
run holdfast repair --above "$far"
is "$rc" 0 'repair --above of a sound store'
check 'tokens start above it' [ "$(token_of job)" -gt "$far" ]
for bad in -1 x 1.5 '' 18446744073709551616; do
    run holdfast repair --above "$bad"
    refused 64 '--above' "--above '$bad'"
done
run holdfast repair --above 9223372036854775807
refused 64 token '--above the highest token there can be'

# in use
holdfast acquire -n --ttl 1h queue >/dev/null
start "$hf" acquire queue >/dev/null 2>&1
waits() { [ "$(holdfast status queue --json | jq .waiters)" = 1 ]; }
within 20 waits
run holdfast repair
refused 75 "$store" 'a store in use is left alone'
kill "$pid"
wait "$pid"
run holdfast repair
is "$rc" 0 'until its user is gone'

# a slip in the path
run holdfast --store "file:$dir/sotre" repair
refused 64 'no store' 'where there is no store there is nothing to repair'
check 'and none is made' [ ! -e "$dir/sotre" ]
run holdfast --store "file:$dir/again" repair --above "$far"
is "$rc" 0 'one that is gone can be begun again above its tokens'
HOLDFAST_STORE=file:$dir/again
check 'and they go on there' [ "$(token_of job)" -gt "$far" ]

run holdfast --store nosuch: repair
refused 64 nosuch 'an unknown scheme'

done_testing
