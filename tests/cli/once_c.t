#!/bin/bash
# Programs over holdfast/once.h and the command `holdfast once`: they exclude each other, take over from each other
# and read each other's history. tool_once.c is such a program.
set -u
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)
tool=$root/${BUILD:-build}/tests/tools/tool_once
work="echo \$HOLDFAST_ONCE_SLOT >>$dir/effect"
effect() { wc -l <"$dir/effect" 2>/dev/null || echo 0; }
c() { # OPTION... KEY -- CMD...: as a program in C
    "$tool" --store "$HOLDFAST_STORE" once "$@"
}

# What one has done the other finds done.
run c --label mail by-c -- sh -c "$work"
is "$rc" 0 'C runs it'
run "$hf" once by-c -- sh -c "$work"
is "$rc" 0 'and the command finds it done'
like "$err" '"by-c": done by mail, began' 'by whom'
run "$hf" once --label web by-hf -- sh -c "$work"
run c by-hf -- sh -c "$work"
is "$rc" 0 'what the command did C finds done'
like "$err" '"by-hf": done by web, began' 'by whom'
is "$(effect)" 2 'each was done once'

# Slots, settings and failures are the same.
run c --per 1d --at 03:00 --tz Europe/Berlin --retries 1 daily -- sh -c 'exit 7'
is "$rc" 1 'C fails, and fails again'
run "$hf" once --per 1d --at 03:00 --tz Europe/Berlin --retries 1 daily -- true
is "$rc" 1 'the command does not try a third time'
like "$err" 'failed with exit code 7, 2 attempts' 'and says how it failed'
run "$hf" once --per 1d --at 04:00 --tz Europe/Berlin daily -- true
is "$rc" 64 'other settings than those of C are refused'
run c --per 12h daily -- true
is "$rc" 64 'by C too'
like "$err" 'is on record with --per 1d --at 03:00 --tz Europe/Berlin, and was started with --per 12h' 'and it says which'
run "$hf" once --history --json by-c
is "$(jq -r '.[0] | .state, .by, .attempts' <<<"$out" | tr '\n' ' ')" 'done mail 1 ' '--history shows what C did'

# Who is at it is not disturbed.
start "$tool" --store "$HOLDFAST_STORE" once line -- sh -c "touch $dir/runs; while [ ! -e $dir/go ]; do sleep 0.05; done; $work"
first=$pid
within 10 test -e "$dir/runs"
run "$hf" once -n line -- sh -c "$work"
is "$rc" 75 'the command finds C at it'
run c --wait 300ms line -- sh -c "$work"
is "$rc" 75 'another one in C too, when its wait is over'
start "$hf" once line -- sh -c "$work"
second=$pid
touch "$dir/go"
ended "$first"
is "$rc" 0 'C ends'
ended "$second"
is "$rc" 0 'who stood in the queue finds it done'
is "$(effect)" 3 'it was done once'

# Killed in the turn: the other one takes over, or a person has to.
crash() { # PROGRAM... : killed while its job runs; the job with it
    rm -f "$dir/runs"
    start "$@" sh -c "touch $dir/runs; sleep 60"
    within 10 test -e "$dir/runs"
    kill -KILL "$pid"
    ended "$pid"
}
crash "$tool" --store "$HOLDFAST_STORE" once dies --
run "$hf" once dies -- sh -c "$work"
is "$rc" 0 'C is killed: the command takes over'
like "$err" 'started it at .*, and has not finished it; running it again' 'and says so'
is "$("$hf" once --show --json dies | jq .attempts)" 2 'it was the second attempt'
crash "$hf" once dies-too --
run c dies-too -- sh -c "$work"
is "$rc" 0 'the command is killed: C takes over'
is "$(effect)" 5 'and it is done'
crash "$tool" --store "$HOLDFAST_STORE" once --hold held --
run "$hf" once --on-crash hold held -- sh -c "$work"
is "$rc" 70 'C is killed, hold: the command refuses'
run c --hold held -- sh -c "$work"
is "$rc" 70 'so does C'
run "$hf" once --clear --reason 'seen to' held
is "$rc" 0 'a person clears it'
run c --hold held -- sh -c "$work"
is "$rc" 0 'and C runs it'

# Stopped past the ttl, and thawed when another one has done it: it cannot overwrite the record.
TOOL_ONCE_STOP=1 start "$tool" --store "$HOLDFAST_STORE" once --ttl 1s --label thawed frozen -- true
first=$pid
stopped() { grep -q '^State:.T' "/proc/$first/status"; }
within 10 stopped
run "$hf" once --label second frozen -- sh -c "$work"
is "$rc" 0 'C stands still: the command takes over when its time is over'
kill -CONT "$first"
ended "$first"
is "$rc" 74 'it hears that its success is not on record'
is "$("$hf" once --show --json frozen | jq -r .by)" second 'which tells of the other one'
done_testing
