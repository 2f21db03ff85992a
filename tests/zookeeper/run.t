#!/bin/bash
# holdfast run on a server that freezes, and on one whose clock steps.
set -u
. "$(dirname "$0")/lib.sh"
cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/clock_step.so" "$root/tests/redis/clock_step.c" || exit 1
echo 0 >"$dir/time"
server_wrap="env LD_PRELOAD=$dir/clock_step.so CLOCK_STEP_FILE=$dir/time"
zk_start a minSessionTimeout=400 maxSessionTimeout=60000
server_wrap=
HOLDFAST_STORE=zookeeper://$(hosts a)
export HOLDFAST_STORE

out=$("$holdfast" run job -- sh -c 'echo $HOLDFAST_TOKEN' 2>&1)
is $? 0 'a job runs'
[ "$out" -gt 0 ] 2>/dev/null
ok $? "with a token: $out"
first=$out

out=$("$holdfast" run job -- "$holdfast" run job -- echo nested 2>&1)
is "$out" nested 'a run inside a run of the same lock is recognised'

# What is inherited on the embedded store is meant to be; this one adds nothing.
fds='find /proc/self/fd -lname "socket:*" -o -lname "pipe:*" | wc -l'
out=$("$holdfast" run job -- sh -c "$fds")
is "$out" "$("$holdfast" --store "file:$dir/file" run job -- sh -c "$fds")" 'the job inherits no connection'

out=$("$holdfast" acquire job 2>&1)
like "$?:$out" '*detached*' 'a detached lease is refused in a sentence'

# The clock of the server steps, there and back.
"$holdfast" run --ttl 3s stepped -- sh -c "echo \$\$ >'$dir/pid'; sleep 12" 2>"$dir/err" &
job=$!
eventually 10 test -s "$dir/pid"
echo 7200 >"$dir/time"
sleep 5
"$holdfast" run -n stepped -- true 2>"$dir/err2"
is $? 75 'two hours later on the server it is still held'
like "$(cat "$dir/err2")" '*stepped*' 'and the text says so'
echo -7200 >"$dir/time"
wait $job
is $? 0 "and to the end of its job, four hours earlier: $(cat "$dir/err")"
token=$("$holdfast" run stepped -- sh -c 'echo $HOLDFAST_TOKEN')
[ "${token:-0}" -gt "$first" ]
ok $? 'tokens do not follow the clock'
echo 0 >"$dir/time"

# Frozen for longer than the ttl.
"$holdfast" run --ttl 3s --grace 500ms frozen -- \
    sh -c "while :; do date +%s%N >'$dir/beat.new'; mv '$dir/beat.new' '$dir/beat'; sleep 0.05; done" \
    2>"$dir/err" &
job=$!
eventually 10 test -s "$dir/beat"
sleep 1
stopped=$(date +%s%N)
kill -STOP "$(pid a)"
wait $job
is $? 123 'the server freezes: the lock is lost'
lived=$((($(cat "$dir/beat") - stopped) / 1000000))
[ "$lived" -lt 3000 ]
ok $? "and the child did not outlive the ttl ($lived ms)"
like "$(cat "$dir/err")" '*could not be renewed in time*' 'the reason is told'
kill -CONT "$(pid a)"
"$holdfast" run -w 20s frozen -- true
is $? 0 'thawed, it grants again'

"$holdfast" run -w 20s line -- sleep 2 &
eventually 10 eval '"$holdfast" status line | grep -q line'
"$holdfast" run -w 20s line -- true &
eventually 10 eval '"$holdfast" list --json | grep -q "\"waiters\": *1"'
ok $? 'a listing shows the waiter'
wait
zk_stop a KILL
start=$SECONDS
out=$("$holdfast" run -n job -- true 2>&1)
is $? 69 'no server: 69'
like "$out" '*no server answers*' 'and a sentence'
[ $((SECONDS - start)) -le 15 ]
ok $? 'in time'
done_testing
