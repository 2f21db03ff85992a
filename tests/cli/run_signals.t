#!/bin/bash
# Signals to the supervisor reach the command and its group.
set -u
. "$(dirname "$0")/lib.sh"

for signal in TERM INT HUP QUIT USR1 USR2; do
    rm -f "$dir/up" "$dir/got"
    # A shell starts background jobs with INT and QUIT ignored; undo that.
    start env --default-signal=INT,QUIT "$hf" run job -- bash -c "
        trap 'echo outer >>$dir/got; exit 3' $signal
        env --default-signal=INT,QUIT bash -c 'trap \"echo inner >>$dir/got; exit\" $signal; echo up >>$dir/up
                 while :; do sleep 0.05; done' &
        echo up >>$dir/up
        while :; do sleep 0.05; done" 2>/dev/null
    within 10 lines "$dir/up" 2
    kill -"$signal" "$pid"
    ended "$pid"
    is "$rc" 3 "$signal is forwarded, and the command's answer counts"
    is "$(sort "$dir/got" | tr '\n' ' ')" 'inner outer ' "$signal reaches the whole group, once"
done

# A child that dies of the signal.
rm -f "$dir/up"
start "$hf" run job -- sh -c "echo up >$dir/up; exec sleep 60"
within 10 test -s "$dir/up"
kill -TERM "$pid"
ended "$pid"
is "$rc" 143 'a command that dies of TERM gives 143'
is_free job
ok $? 'and the lock is free'

# A child that went to another process group.
rm -f "$dir/up"
start "$hf" run job -- perl -e '
    setpgrp(0, '"$(ps -o pgid= -p $$)"') or die; $SIG{TERM} = sub { exit 9 };
    system "echo up >'"$dir"'/up"; sleep 20'
within 10 test -s "$dir/up"
kill -TERM "$pid"
ended "$pid"
is "$rc" 9 'a command that left its process group gets the signal'

# A child that does not mind.
rm -f "$dir/up"
start "$hf" run job -- sh -c "trap '' TERM; echo up >$dir/up; while [ ! -e $dir/stop ]; do sleep 0.05; done"
within 10 test -s "$dir/up"
kill -TERM "$pid"
sleep 0.3
alive "$pid"
ok $? 'a command that ignores TERM goes on'
! is_free job
ok $? 'with its lock'
touch "$dir/stop"
ended "$pid"
is "$rc" 0 'until it ends by itself'

done_testing
