#!/bin/bash
# run --at-least: not again for a while after a start.
set -u
. "$(dirname "$0")/lib.sh"

ran() { echo "echo ran >>$dir/$1"; } # NAME : a command that leaves a line
count() { if [ -e "$dir/$1" ]; then wc -l <"$dir/$1"; else echo 0; fi; }

run "$hf" run -n --at-least 1h --label first job -- sh -c "$(ran a)"
is "$rc:$err:$(count a)" 0::1 'the first one runs'
run "$hf" run -n --at-least 1h job -- sh -c "$(ran a)"
is "$rc:$(count a)" 75:1 'the next one within the time is refused, as if the lock were busy'
like "$err" '^holdfast: lock "job": first started less than 1h ago \(--at-least\), not again for another (59m[0-9]+s|1h)$' \
    'and is told by whom it was started, and how long it is'
run "$hf" run -n -E 9 --at-least 1h job -- sh -c "$(ran a)"
is "$rc" 9 '--busy-exit counts here too'
run "$hf" run -n --skip-ok --at-least 1h job -- sh -c "$(ran a)"
is "$rc:$err:$(count a)" 0::1 'so does --skip-ok, which says nothing'
before=$SECONDS
run "$hf" run -w 20s --at-least 1h job -- sh -c "$(ran a)"
is "$rc:$(count a)" 75:1 '-w: a wait that would end too early'
[ $((SECONDS - before)) -lt 15 ]
ok $? 'is not begun'
run "$hf" run -n job -- sh -c "$(ran a)"
is "$rc:$(count a)" 0:2 'the lock itself is free: who does not ask runs'
run "$hf" run -n --at-least 1ms job -- sh -c "$(ran a)"
is "$rc:$(count a)" 0:3 'who asks for less time than the last one did gets what it asks for'

# It is over when its time is.
run "$hf" run -n --at-least 2s soon -- sh -c "$(ran b)"
before=$(date +%s%N)
run "$hf" run -w 1m --at-least 2s soon -- sh -c "$(ran b); date +%s%N >$dir/began"
is "$rc:$(count b)" 0:2 '-w waits until then, and runs'
[ "$(cat "$dir/began")" -ge $((before + 1000000000)) ]
ok $? 'not earlier'
like "$err" 'not again for another .*; waiting$' 'and says what it waits for'

# A start counts, however it ends; what was not started does not.
run "$hf" run -n --at-least 1h fails -- false
run "$hf" run -n --at-least 1h fails -- true
is "$rc" 75 'a run that failed was started'
mkfifo "$dir/hold"
start "$hf" run held -- sh -c "echo up >$dir/up; read -r _ <$dir/hold"
holder=$pid
within 10 test -s "$dir/up"
run "$hf" run -n --at-least 1h held -- true
is "$rc" 75 'busy is busy'
kill -TERM "$holder"
ended "$holder"
run "$hf" run -n --at-least 1h held -- true
is "$rc" 0 'and leaves no record: the next one runs'

# Five at once, each with patience: one a time.
pids=
for _ in 1 2 3 4 5; do
    "$hf" run -n --skip-ok --at-least 1h crowd -- sh -c "$(ran c)" &
    pids="$pids $!"
done
for i in $pids; do wait "$i"; done
is "$(count c)" 1 'of five that come together one runs'
run "$hf" run -n --at-least 1h crowd -- sh -c "$(ran c)"
is "$rc:$(count c)" 75:1 'nor does one that comes after'

# A signal ends the wait.
run "$hf" run -n --at-least 1h job -- true
start "$hf" run --at-least 1h --events "$dir/ev" job -- touch "$dir/never2" 2>"$dir/waits"
waiter=$pid
within 10 grep -q waiting "$dir/waits"
is_free job
ok $? 'who waits for the time does not hold the lock'
kill -TERM "$waiter"
ended "$waiter"
is "$rc" 143 'and a signal ends the wait'
[ ! -e "$dir/never2" ]
ok $? 'nothing was run'
like "$(cat "$dir/ev")" '"event": "waiting".*"status": "HF_BUSY", "reason": .*--at-least' 'the wait is an event'
like "$(tail -n 1 "$dir/ev")" '"event": "ended".*"exit_code": 143' 'and so is its end'

# Two in one tree.
run "$hf" run nested -- "$hf" run --at-least 1h --events "$dir/nested" nested -- true
is "$rc" 64 'below a hold of the same lock it is refused'
is "$(jq -r '[.event, .exit_code] | join(" ")' "$dir/nested" | tail -n 1)" 'ended 64' 'and its events end with that'
like "$err" 'a process above this one holds it' 'in a sentence'
for odd in 0 400d; do
    run "$hf" run --at-least $odd job -- true
    is "$rc" 64 "--at-least $odd is refused"
done

done_testing
