#!/bin/bash
# `holdfast once`: a command that is to succeed once, or once per period, whoever starts it.
# shellcheck disable=SC2317 # in_line is called by name
set -u
. "$(dirname "$0")/lib.sh"

effect() { wc -l <"$dir/effect" 2>/dev/null || echo 0; }
work="echo \$HOLDFAST_ONCE_SLOT >>$dir/effect"

# Without --per: an idempotency key.
run "$hf" once pay-1 -- sh -c "$work"
is "$rc" 0 'the first one runs'
is "$err" '' 'and says nothing'
is "$(cat "$dir/effect")" ever 'it knows its slot'
run "$hf" once pay-1 -- sh -c "$work"
is "$rc" 0 'the second one exits 0'
like "$err" '^holdfast: "pay-1": done by [^ ]*/[0-9]+/sh, began 20[0-9-]+ [0-9:]+ UTC, took [0-9.]+m?s$' \
    'and says in one line who ran it, when, how long'
is "$(effect)" 1 'the command ran once'
run "$hf" once --skip-ok pay-1 -- sh -c "$work"
is "$rc$err" 0 '--skip-ok says nothing'
run "$hf" once --done-exit 9 pay-1 -- sh -c "$work"
is "$rc" 9 '--done-exit chooses the code'
run "$hf" once -n pay-1 -- sh -c "$work"
is "$rc" 0 '-n finds it done'
run "$hf" run -n pay-1 -- true
is "$rc" 0 'the lock is free'

# Per period.
off_border $((12 * 3600))
rm "$dir/effect"
run "$hf" once --per 1d daily -- sh -c "$work"
is "$rc" 0 'a slot is run'
like "$(cat "$dir/effect")" '^20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]$' 'the slot of a day is a date'
run "$hf" once --per 1d daily -- sh -c "$work"
is "$(effect)" 1 'and not again'
like "$err" '"daily", slot 20[0-9-]+: done by' 'the line names the slot'
run "$hf" once --per 12h half -- sh -c "$work"
like "$(tail -n 1 "$dir/effect")" '^20..-..-..T(00|12):00Z$' 'a shorter period is UTC'

# Those who come while it runs stand in the queue.
rm "$dir/effect"
start "$hf" once --per 1d night -- sh -c "touch $dir/runs; while [ ! -e $dir/go ]; do sleep 0.05; done; $work"
first=$pid
within 10 test -e "$dir/runs"
ok $? 'one runs'
run "$hf" once -n --per 1d night -- sh -c "$work"
is "$rc" 75 '-n leaves at once: 75'
like "$err" 'held by' 'and says who is at it'
run "$hf" once -n --skip-ok --per 1d night -- sh -c "$work"
is "$rc$err" 0 'with --skip-ok 0, and nothing is said'
run "$hf" once -w 300ms --per 1d night -- sh -c "$work"
is "$rc" 75 '-w waits that long'
waiters=
for i in 1 2 3 4; do
    start "$hf" once --per 1d night -- sh -c "$work" 2>"$dir/words.$i"
    waiters="$waiters $pid"
done
in_line() { "$hf" status --json night | jq -e '.waiters == 4' >/dev/null; }
within 20 in_line
ok $? 'four wait in the queue'
touch "$dir/go"
ended "$first"
is "$rc" 0 'the winner ends'
for one in $waiters; do
    ended "$one"
    [ "$rc" -eq 0 ] || break
done
is "$rc" 0 'all four exit 0 when it is done'
is "$(effect)" 1 'it ran once'
is "$(cat "$dir"/words.* | grep -c 'slot .*: done by .*took')" 4 'each says who did it'

# The winner is killed: one of those in the queue takes over.
rm -f "$dir/effect" "$dir/runs" "$dir/go"
start "$hf" once --per 1d crash -- sh -c "touch $dir/runs; sleep 60; $work"
first=$pid
within 10 test -e "$dir/runs"
start "$hf" once --per 1d crash -- sh -c "$work" 2>"$dir/words.1"
second=$pid
in_line() { "$hf" status --json crash | jq -e '.waiters == 1' >/dev/null; }
within 20 in_line
kill -KILL "$first"
ended "$second"
is "$rc" 0 'who stands in the queue takes over from one that was killed'
is "$(effect)" 1 'and does it'
like "$(cat "$dir/words.1")" 'started it at .*, and has not finished it; running it again' 'and says why'
like "$("$hf" once --show --json crash | jq -r '.attempts')" '^2$' 'both attempts are counted'

# Nested: whoever is above is at this very job.
run "$hf" once nest -- "$hf" once --events "$dir/nest" nest -- true
is "$rc" 75 'a nested one of the same key is busy'
like "$err" 'by a process above' 'and says why'
is "$(jq -r .event "$dir/nest" | tr '\n' ' ')" 'skipped ended ' 'to its events as well'
run "$hf" once nest2 -- "$hf" once nest3 -- sh -c 'exit 0'
is "$rc" 0 'of another key it is not'
run "$hf" once outer -- "$hf" run outer -- true
is "$rc" 0 'and run re-enters as ever'

# What the command writes.
run "$hf" once --output words -- sh -c 'echo out; echo err >&2; exit 3'
is "$rc" 3 'with --output the code is the command'\''s'
is "$out" out 'stdout is passed on'
is "$err" err 'stderr too'
is "$("$hf" once --show words | sed -n '/^  output$/,$p' | sort | tr '\n' ' ')" '  output err out ' 'both are on record'
run "$hf" once --output long -- sh -c 'seq 100000'
is "$(tail -n 1 <<<"$out")" 100000 'a long output is passed on'
is "$(wc -l <<<"$out")" 100000 'all of it'
run "$hf" once --show --json long
is "$(jq -j '.output' <<<"$out" | tail -n 1)" 100000 'the end of it is kept'
is "$(jq -r '.output | length' <<<"$out")" 32768 '32 KiB'
run timeout 20 "$hf" once --output --leftover release daemon -- sh -c 'sleep 30 & echo started'
is "$rc" 0 'a daemon that keeps the pipe open holds nothing up'
is "$("$hf" once --show --json daemon | jq -r .output)" started 'and what was said before is on record'

# The environment is the command's own.
HOLDFAST_ONCE_SLOT=wrong run "$hf" once --per 1h env -- sh -c 'echo $HOLDFAST_ONCE_SLOT $HOLDFAST_NAME'
like "$out" '^20.*Z env$' 'an inherited HOLDFAST_ONCE_SLOT is overwritten'

# Other programs hear of it.
run "$hf" once --events "$dir/events" --per 1d told -- true
is "$(jq -r .event "$dir/events" | tr '\n' ' ')" 'acquired started exited released ended ' 'a run tells its events'
rm "$dir/events"
run "$hf" once --events "$dir/events" --per 1d told -- true
is "$(jq -r .event "$dir/events" | tr '\n' ' ')" 'skipped ended ' 'one that finds it done, too'
like "$(jq -r .reason "$dir/events" | head -n 1)" 'done by' 'and why'

# What is on record before CMD starts need not outlast the machine if the slot is run again then; with
# --on-crash hold it must, and what became of it always.
puts() { sed -n 's/^holdfast: \(put\( soft\| both\)\{0,1\}\)  *soft-. .*/\1/p' <<<"$err" | tr '\n' ' '; }
HOLDFAST_TRACE=1 run "$hf" once soft-1 -- true
is "$(puts)" 'put soft put ' 'a run that would be run again may be forgotten, its outcome may not'
HOLDFAST_TRACE=1 run "$hf" once --on-crash hold soft-2 -- true
is "$(puts)" 'put both put ' 'with --on-crash hold neither may be'
HOLDFAST_TRACE=1 run "$hf" once soft-3 -- false
is "$(puts)" 'put soft put ' 'nor may a failure'

done_testing
