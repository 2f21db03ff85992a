#!/bin/bash
# `holdfast explain` on the embedded store: the whole story, word by word.
# run: first
set -u
. "$(dirname "$0")/cmd.sh"
. "$root/tests/support/explain.sh"

told() { # EXPECTED DESCRIPTION : the story of "job"
    run holdfast explain job
    is "$(golden <"$dir/out")" "$1" "$2"
    run holdfast explain job --json
    check "$2: one line of JSON" test "$(wc -l <"$dir/out")" = 1
    cat "$dir/out" >>"$dir/told"
}
held() { holdfast status "${1-job}" --held >/dev/null; }
freed() { holdfast status job --free >/dev/null; }
waited() { holdfast status job --json | jq -e '.waiters == 1' >/dev/null; }

told 'job in URL: free
  waiting    0
  records    none
  next       Whoever asks first has the lock.' 'a free lock'
check 'looking makes no store' test ! -e "$dir/store"

holdfast run --label 'host/1/nightly' job -- sleep 600 &
started="$started $!"
within 20 held
told 'job in URL: held
  held by    host/1/nightly
  since      TIME, SPAN ago
  token      TOKEN, from the clock at TIME
  renewed    TIME, SPAN ago
  time left  SPAN of SPAN
  seems      alive: it has renewed on time
  broken     no
  waiting    0
  records    none
  next       The holder renews within SPAN. If it does not, the hold ends in SPAN, and the lock is free.' 'a lock that is held'
token=$(holdfast status job --json | jq .token)
run holdfast explain job --json
json ".holder.token == $token and .holder.ttl_ms == 30000 and .next.what == \"renewal\"" 'the same in JSON'

"$hf" run job -- true 2>"$dir/waiting" &
waiter=$!
started="$started $waiter"
within 20 waited
run holdfast explain job
like "$out" '^  waiting    1, first come, first served; this store does not tell who they are$' 'somebody waits'
like "$out" 'the hold ends in .*, and the next in the queue has the lock[.]$' 'and is next'

run holdfast break job --token "$token" --reason 'it is stuck' --yes
told_broken() { holdfast explain job --json | jq -e '.broken.reason == "it is stuck" and .next.what == "release"'; }
check 'a hold that was broken' told_broken
run holdfast explain job
like "$out" '^  broken     [0-9TZ:-]+ by .*: it is stuck$' 'and who did it, when and why'
like "$out" 'It was broken: its holder ends its work' 'and what happens next'
kill -TERM "$waiter" 2>/dev/null
check 'whose holder ends' within 20 freed
told 'job in URL: free
  earlier    broken TIME by US: it is stuck
  waiting    0
  records    none
  next       Whoever asks first has the lock.' 'the last break is told when the hold is over'
holdfast acquire -n --ttl 1h job >/dev/null
run holdfast explain job --json
json '.broken == null and .last_break.reason == "it is stuck"' 'and of a lock that another holds, as an earlier one'

# A holder that stands still has missed its renewal.
"$hf" run --ttl 9s --label frozen --on-loss warn slow -- sleep 600 2>/dev/null &
slow=$!
started="$started $slow"
within 20 held slow
kill -STOP "$slow"
late() { holdfast explain slow --json | jq -e '.holder.seems == "late" and .next.what == "end"'; }
check 'a frozen holder is late' within 20 late
run holdfast explain slow
like "$out" 'frozen, cut off or gone' 'and called so'
kill -KILL "$slow"

# Records, detached holds.
holdfast once report -- true >/dev/null 2>&1
run holdfast explain report
like "$out" '^  records    once:.*, [0-9]+ bytes, by token [0-9]+$' 'records are told'
holdfast acquire -n --ttl 1h --label 'batch' slot >/dev/null
run holdfast explain slot
like "$out" 'detached: it belongs to no process' 'a detached hold'
like "$out" 'Unless it is renewed, the hold ends in 59m' 'ends by itself'
run holdfast break slot --token "$(holdfast status slot --json | jq .token)"
run holdfast explain slot
like "$out" 'detached: whoever has it hears of that at its next renewal, and releases it, in 59m' 'when it was broken, nobody hears'

# Hostile names and labels do nothing to the terminal, and are JSON.
name=$'\xff\xfe\xe2\x80\xae"\\ a'
holdfast acquire -n --ttl 1h --label $'\xe2\x80\xae</script>"\\' "$name" >/dev/null
run holdfast explain "$name"
unlike "$out" $'[\x01-\x08\x0b-\x1f]' 'no control characters'
unlike "$out" $'\xe2\x80\xae' 'no marks of direction'
run holdfast explain "$name" --json
cat "$dir/out" >>"$dir/told"
check 'JSON all the same, and as the schema says' fits_schema "$dir/told"

# Watching.
"$hf" explain --watch --json live >"$dir/live" 2>"$dir/live.err" &
watcher=$!
started="$started $watcher"
says() { jq -se "$1" "$dir/live" >/dev/null 2>&1; }
check 'what is there is told at once' within 20 says 'length == 1 and .[0].held == false'
holdfast acquire -n --ttl 1h live >/dev/null
check 'and what changes' within 20 says '.[-1].held == true'
check 'and nothing else' says 'length == 2'
check 'each as the schema says' fits_schema "$dir/live"
kill -TERM "$watcher"
{ wait "$watcher"; } 2>/dev/null
start bash -c "'$hf' explain --watch live 2>/dev/null | head -n 1 >$dir/one; echo over >$dir/over"
check 'a reader that leaves ends it, though nothing changes any more' within 15 test -s "$dir/over"

# Arguments and stores that make no sense.
run holdfast explain
refused 64 'which lock?' 'no name'
run holdfast explain ''
refused 64 'is empty' 'an empty name'
run holdfast explain a b
refused 64 'unexpected word' 'a word too many'
run holdfast --store redis://127.0.0.1:1 explain job
is "$rc" 69 'a store that is down'
done_testing
