#!/bin/bash
# The supervisor or its watchdog is killed or stopped: the tree still ends before the next holder
# begins.
# run: first
set -u
. "$(dirname "$0")/lib.sh"
herd=$(dirname "$0")/helpers/herd.pl

# Starts a herd under the lock, the supervisor in $holder.
start_herd() { # OPTION...
    rm -f "$dir/herd"
    start "$hf" run "$@" job -- "$herd" "$size" "$dir/herd" 2>/dev/null
    holder=$pid
    within 20 lines "$dir/herd" $((size + 1))
    watchdog=$(watchdog_of "$holder")
}

# Prints who of the herd is alive; zombies are not.
cat >"$dir/survivors" <<END
for pid in \$(cat $dir/herd); do
    grep -q '^State:.[^ZX]' /proc/\$pid/status 2>/dev/null && echo \$pid
done
true
END

# A waiter that looks, the moment it holds the lock, which processes of the first tree are still alive.
next_holder() {
    run "$hf" run -w 60s job -- bash "$dir/survivors"
    is "$rc" 0 "$1: the next holder gets the lock"
    is "$out" '' "$1: and nobody of the first tree is alive then"
} 2>/dev/null

size=8
start_herd --ttl 3s --grace 200ms
kill -STOP "$holder"
next_holder 'supervisor stopped'
kill -CONT "$holder"
ended "$holder"
is "$rc" 123 'supervisor stopped: says so when it goes on'

start_herd --ttl 20s --grace 200ms
before=$SECONDS
kill -KILL "$holder"
next_holder 'supervisor killed'
[ $((SECONDS - before)) -lt 15 ]
ok $? 'supervisor killed: the lock is free long before its ttl'
within 5 dead "$watchdog"
ok $? 'supervisor killed: the watchdog is gone, too'

start_herd --ttl 20s
kill -KILL "$watchdog"
next_holder 'watchdog killed'
ended "$holder"
is "$rc" 125 'watchdog killed: 125'

start_herd --ttl 3s --grace 200ms
kill -STOP "$watchdog"
kill -TERM "$holder"
sleep 0.2
kill -STOP "$holder"
next_holder 'watchdog stopped, then the supervisor'
kill -CONT "$holder"
ended "$holder"

size=100
# A herd that was not whole yet when its time was over proves nothing.
for limit in 1500ms 6s 24s; do
    start_herd --ttl 4s --grace 200ms --max-runtime $limit
    ended "$holder"
    ! lines "$dir/herd" 101 || break
done
is "$rc" 124 'a hundred processes: ended'
# shellcheck disable=SC2046
dead $(cat "$dir/herd")
ok $? 'a hundred processes: all dead'
is "$(wc -l <"$dir/herd")" 101 'a hundred processes: there were so many'

# A watchdog that is frozen by other means cannot be woken: the supervisor does its work.
size=8
start_herd --ttl 4s --grace 200ms --max-runtime 1500ms
start "$(dirname "$0")/helpers/freeze.pl" "$watchdog" 60 >"$dir/frozen" 2>&1
freezer=$pid
within 5 test -s "$dir/frozen"
if grep -q '^frozen' "$dir/frozen"; then
    ended "$holder"
    is "$rc" 124 'watchdog frozen: the supervisor ends the tree'
    # shellcheck disable=SC2046
    dead $(cat "$dir/herd") "$watchdog"
    ok $? 'watchdog frozen: all are dead'
else
    kill -KILL "$holder"
    skip 2 "cannot trace a process here: $(cat "$dir/frozen")"
fi
kill -KILL "$freezer" 2>/dev/null

# A tree that cannot be looked at is not gone: here the supervisor may not open a file. It has a child
# from before, whom it must not wait for, so that "no child left" is not the answer.
rm -f "$dir/herd"
start sh -c "sleep 60 & exec $hf run --ttl 60s job -- $herd $size $dir/herd" 2>"$dir/err"
holder=$pid
within 20 lines "$dir/herd" $((size + 1))
stranger=$(pgrep -P "$holder" -x sleep)
watchdog=$(pgrep -P "$holder" -x holdfast-watch)
started="$started $stranger"
prlimit --pid "$holder" --nofile=3:
kill -KILL "$watchdog"
sleep 0.5
alive "$holder" && ! is_free job
ok $? 'tree unreadable: the lock stays held while it is'
prlimit --pid "$holder" --nofile=256:
ended "$holder"
is "$rc" 125 'tree unreadable, then readable: ends'
# shellcheck disable=SC2046
dead $(cat "$dir/herd")
ok $? 'tree unreadable, then readable: all are dead'
alive "$stranger"
ok $? 'tree unreadable, then readable: the child from before is not'

# The watchdog shrugs off what can be shrugged off.
size=1
start_herd --ttl 20s --grace 200ms
for signal in TERM INT HUP QUIT USR1 ALRM PIPE TSTP; do
    kill -"$signal" "$watchdog"
done
sleep 0.2
alive "$watchdog" && ! is_free job
ok $? 'the watchdog ignores signals'
kill -KILL "$holder"
next_holder 'after that'

done_testing
