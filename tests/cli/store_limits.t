#!/bin/bash
# A store that grants short leases only, and one in quarantine: what the commands make of it.
set -u
. "$(dirname "$0")/cmd.sh"
build=$(cd "${BUILD:-build}" && pwd)
export HOLDFAST_STORE_PATH=$build/tests/plugins HOLDFAST_STORE=moody:$dir/mood

mood() { # LINE... : how the store feels from now on
    printf '%s\n' "$@" >"$dir/mood.new"
    mv "$dir/mood.new" "$dir/mood"
}

# Without --ttl: 30s, or less if the store grants less.
mood
run holdfast acquire -n --json job
json '.ttl_ms == 30000' 'acquire: 30s by default'
mood 'max_ttl is 2000'
run holdfast acquire -n --json job
is "$rc" 0 'acquire on a store with max_ttl 2s'
json '.ttl_ms == 2000' 'acquire: as long as the store grants'
HOLDFAST_TRACE=1 run holdfast run -n job -- true
is "$rc" 0 'run on a store with max_ttl 2s'
run holdfast run -n --grace 100ms job -- true
is "$rc" 0 'run with a grace that fits'
run holdfast run -n --grace 5s job -- true
refused 64 'a ttl of 2s is too short' 'run with a grace that does not'
mood 'max_ttl is 500'
run holdfast trap
has "$out" 'a ttl of 500ms' 'trap: as long as the store grants'
mood 'max_ttl is 2000'
for command in 'run -n --ttl 10s job -- true' 'acquire -n --ttl 10s job'; do
    # shellcheck disable=SC2086
    run holdfast $command
    refused 64 "a ttl of 10s is above the store's max_ttl of 2s" "${command%% *}: a longer one is refused"
done

# In quarantine, status says why and until when.
mood 'acquire quarantine 47000'
run holdfast status
is "$rc" 0 'status of a store in quarantine'
has "$out" 'quarantine for another 47s: store moody: its acquire is quarantine today' 'says so, why and how long'
run holdfast status --json
json '.quarantine.remaining_ms == 47000 and (.quarantine.reason | test("today"))' 'status --json: the same'
run holdfast status job
has "$out" 'quarantine for another 47s' 'status of a lock: the same'
mood
run holdfast status --json
json '.quarantine == null' 'status --json of a store that is open'
run holdfast status
check 'status of one that is open says nothing of it' not contains "$out" quarantine
mood 'acquire quarantine 60000'
script -qefc "stty cols 80; timeout 2 $hf run job -- true" "$dir/screen" >/dev/null
has "$(cat "$dir/screen")" "for \"job\": quarantine for another" 'the waiting line'
line=$(tr '\r' '\n' <"$dir/screen" | sed -n 's/^\x1b\[K\(holdfast: waiting [0-9].*\)/\1/p' | tail -n 1)
check 'and it fits' test "${#line}" -gt 40 -a "${#line}" -le 80

# The end of a quarantine, on the word of a person.
mood 'acquire quarantine 60000'
run holdfast repair --open
refused 64 '--reason' 'repair --open needs a reason'
run holdfast repair --reason because
refused 64 '--open' 'a reason needs --open'
run holdfast repair --open --reason because --above 5
refused 64 'used together' '--open with --above'
run holdfast run -n job -- true
is "$rc" 69 'in quarantine'
run holdfast repair --open --reason 'a new server, nobody holds anything'
is "$rc" 0 'repair --open'
has "$out" 'the quarantine is over' 'says what was done'
has "$(cat "$dir/mood")" 'because a new server, nobody holds anything' 'and why it was done is on record'
run holdfast run -n job -- true
is "$rc" 0 'the store is open'
run holdfast repair --open --reason again
refused 64 'not in quarantine' 'nothing to open'
run holdfast --store "file:$dir/file" repair --open --reason because
refused 64 'has no quarantine' 'a kind of store without one'
mood 'acquire quarantine 60000'
start "$hf" run job -- true 2>/dev/null
sleep 0.5
holdfast repair --open --reason known >/dev/null
ended "$pid"
is "$rc" 0 'who waits hears of it'

done_testing
