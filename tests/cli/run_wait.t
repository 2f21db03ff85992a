#!/bin/bash
# Waiting: limits, mutual exclusion, order, and leaving the queue.
set -u
. "$(dirname "$0")/lib.sh"

waiting() { # COUNT : do that many wait for the job?
    "$hf" status job --json | grep -q "\"waiters\": $1,"
}

mkfifo "$dir/hold"
start "$hf" run job -- sh -c "echo up >$dir/up; read -r _ <$dir/hold"
holder=$pid
within 10 test -s "$dir/up"

before=$SECONDS
run "$hf" run -w 300ms job -- true
is "$rc" 75 '-w gives up with 75'
[ $((SECONDS - before)) -lt 10 ]
ok $? 'and does so in time'
run "$hf" run -w 0 job -- true
is "$rc" 75 '-w 0 does not wait'
run "$hf" run -w 1.5s --label me job -- true
like "$err" "^holdfast: waiting [0-9.]+m?s of 1.5s for \"job\", held .*s by .*/sh, ttl .*token [0-9]+" \
    'who waits for a second is told how long, and for whom'

run "$hf" run -w 1.5s --skip-ok job -- true
is "$rc:$err" 0: '--skip-ok -w: nothing is said off a terminal'

# A signal while waiting: die of it, leave the queue, do not run the command.
for signal in TERM INT HUP QUIT USR1 USR2; do
    start env --default-signal="$signal" "$hf" run job -- touch "$dir/ran" 2>/dev/null
    waiter=$pid
    within 10 waiting 1
    kill -"$signal" "$waiter"
    ended "$waiter"
    is "$rc" $((128 + $(kill -l "$signal"))) "$signal ends the wait, and we die of it"
done
[ ! -e "$dir/ran" ]
ok $? 'the command was not run'

# Ignored from outside stays ignored.
start sh -c "trap '' HUP; exec $hf run job -- touch $dir/ran-hup" 2>/dev/null
waiter=$pid
within 10 waiting 1
kill -HUP "$waiter"
sleep 0.3
alive "$waiter"
ok $? 'HUP does not end the wait under nohup'
kill -TERM "$waiter"
ended "$waiter"
is "$rc" 143 'but TERM does'

# First come, first served.
for i in 1 2 3 4 5; do
    start "$hf" run job -- sh -c "echo $i >>$dir/order" 2>/dev/null
    waiters="${waiters-} $pid"
    within 10 waiting "$i"
done
echo >"$dir/hold"
ended "$holder"
is "$rc" 0 'the holder ends well'
for pid in $waiters; do
    ended "$pid"
done
is "$(tr '\n' ' ' <"$dir/order")" '1 2 3 4 5 ' 'waiters are served in the order they came'

# Many at once: a counter that would go wrong if two ran together.
echo 0 >"$dir/counter"
for i in 1 2 3 4 5 6; do
    start sh -c "for n in 1 2 3 4 5; do
        $hf run count -- sh -c 'n=\$(cat $dir/counter); sleep 0.005; echo \$((n + 1)) >$dir/counter'
    done"
    counters="${counters-} $pid"
done
for pid in $counters; do
    ended "$pid"
done
is "$(cat "$dir/counter")" 30 'six at a time never run together'

done_testing
