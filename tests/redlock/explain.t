#!/bin/bash
# holdfast explain on a redlock: what a majority of the nodes tells, and what nobody can see.
# shellcheck disable=SC2317,SC1091 # a function that is used by name; a file that is made here
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain.sh"

nodes 5
export HOLDFAST_STORE
HOLDFAST_STORE=$(redlock '')
story() { "$hf" explain "$1" | golden; }
# seen NAME FILTER : of what is said of the lock now, which is left in $dir/out
seen() { "$hf" explain "$1" --json >"$dir/out" && jq -e "$2" "$dir/out" >"$dir/jq"; }

is "$(story job)" 'job in URL: free
  earlier    this store does not tell whether a hold was broken
  waiting    cannot be seen: there is no queue here, waiters ask again and again
  records    this store does not tell
  next       Whoever asks first has the lock.' 'a free lock'

"$hf" run --ttl 9s --label first job -- sleep 600 2>"$dir/first.err" &
first=$!
eventually 20 seen job .held
"$hf" run -w 60s --label second job -- true 2>"$dir/second.err" &
second=$!
says_it_waits() { grep -q waiting "$dir/second.err"; }
eventually 20 says_it_waits
is "$(story job)" 'job in URL: held
  held by    first
  since      TIME, SPAN ago
  token      TOKEN, from the clock at TIME
  renewed    TIME, SPAN ago
  time left  SPAN of SPAN
  seems      alive: it has renewed on time
  broken     no
  earlier    this store does not tell whether a hold was broken
  waiting    cannot be seen: there is no queue here, waiters ask again and again
  records    this store does not tell
  next       The holder renews within SPAN. If it does not, the hold ends in SPAN, and the lock is free.' 'a lock that is held'
seen job '.holder.ttl_ms == 9000 and .waiters == null and .queue == null and .next.what == "renewal"'
ok $? 'the same in JSON'
fits_schema "$dir/out"
ok $? 'as its schema says'

# Nodes that missed renewals know less, and there is one in every majority that did not.
kill -STOP "$(pid n1)" "$(pid n2)"
sleep 7
kill -CONT "$(pid n1)" "$(pid n2)"
alive=0
for _ in 1 2 3 4 5 6; do
    seen job '.holder.seems == "alive"' || alive=1
done
is "$alive" 0 'renewals that a majority heard of are seen, whoever else did not'

kill -STOP "$first"
eventually 20 seen job '.holder.seems == "late" and .next.what == "end"'
ok $? 'a frozen holder is late'
kill -CONT "$first"
kill -TERM "$first" "$second"
wait "$first" "$second" 2>"$dir/jobs"

# A renewal by hand may have another ttl.
"$hf" acquire -n --ttl 20s by-hand >"$dir/env"
. "$dir/env"
"$hf" renew --ttl 50s by-hand >"$dir/renewed" 2>&1
seen by-hand '.holder.ttl_ms == 50000 and .holder.remaining_ms > 40000'
ok $? 'the ttl that it was renewed with'

for n in n1 n2 n3 n4 n5; do rcli "$n" set stuck whoever >"$dir/set"; done
seen stuck '.holder.foreign and .holder.endless and .holder.renewed == null and .next.what == "never"'
ok $? 'a key without a ttl never ends'
fits_schema "$dir/out"
ok $? 'as its schema says'
timeout 10 "$hf" run -w 2s stuck -- true 2>"$dir/err"
like "$(cat "$dir/err")" '*whose key has no ttl: this never ends by itself*' 'and the line of a run that waits says so'
done_testing
