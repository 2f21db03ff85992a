#!/bin/bash
# holdfast run on a server that grants less than is asked for, that freezes, and whose clock steps.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
stepping_clock
zk_start a minSessionTimeout=400 maxSessionTimeout=4000 # leases of 3 s at most
server_wrap=
HOLDFAST_STORE="zookeeper://$(hosts a)?tick=200ms"
export HOLDFAST_STORE
under() { "$hf" run --ttl 3s "$@"; }
says() { grep -q "$1" "$2"; }

out=$("$hf" trap 2>&1)
is $? 0 'the trap springs here without a fence, and not with one'
like "$out" '*REFUSED*is stale*' 'which refuses the one that came too late'

first=$(under job -- sh -c 'echo $HOLDFAST_TOKEN' 2>"$dir/err")
is $? 0 'a job runs'
above "$first" 0 'with a token'
is "$(cat "$dir/err")" '' 'and nothing is said'
is "$(under job -- "$hf" run job -- echo nested 2>&1)" nested 'a run inside a run of the same lock is recognised'

# What is inherited on the embedded store is meant to be; this one adds nothing.
fds='find /proc/self/fd -lname "socket:*" -o -lname "pipe:*" | wc -l'
is "$(under job -- sh -c "$fds")" "$("$hf" --store "file:$dir/file" run job -- sh -c "$fds")" \
    'the job inherits no connection'

out=$("$hf" acquire job 2>&1)
like "$?:$out" '*detached*' 'a detached lease is refused in a sentence'

# Three seconds are granted instead of thirty: a grace of five would end the job at its start.
"$hf" run long -- sleep 4 2>"$dir/err"
is $? 0 'a lease that is shorter than asked for is renewed in time'
is "$(cat "$dir/err")" "holdfast: lock \"long\": the store grants a lease of 3s, not of 30s" 'and that is said'
out=$("$hf" run --grace 2500ms long -- true 2>&1)
is $? 64 'a grace that does not fit the lease is refused'
like "$out" '*a ttl of 3s is too short*' 'in a sentence'
HOLDFAST_TRACE=1 "$hf" run long -- true 2>"$dir/err"
says 'a lease of 3s, not of 30s' "$dir/err"
ok $? 'the trace has it too'

# The clock of the server steps, there and back.
made() { kazoo a "print(k.exists(k.create('/clock-', sequence=True)).created)" | sed 's/[.].*//'; }
before=$(made)
under stepped -- sh -c "echo \$\$ >'$dir/pid'; until [ -e '$dir/enough' ]; do sleep 0.2; done" 2>"$dir/err" &
job=$!
eventually 20 test -s "$dir/pid"
clock_step 7200
above "$(made)" $((before + 7000)) 'two hours later on the server'
sleep 4
out=$("$hf" run -n stepped -- true 2>&1)
is $? 75 'the lock is still held'
like "$out" '*stepped*held by*' 'and the text says so'
clock_step -7200
sleep 4
: >"$dir/enough"
wait $job
is $? 0 "and to the end of its job, four hours earlier: $(cat "$dir/err")"
above "$(under stepped -- sh -c 'echo $HOLDFAST_TOKEN')" "$first" 'tokens do not follow the clock'
clock_step 0

# Frozen for longer than the ttl.
under --grace 500ms frozen -- \
    sh -c "while :; do date +%s%N >'$dir/beat.new'; mv '$dir/beat.new' '$dir/beat'; sleep 0.05; done" \
    2>"$dir/err" &
job=$!
eventually 20 test -s "$dir/beat"
stopped=$(date +%s%N)
kill -STOP "$(pid a)"
wait $job
is $? 123 'the server freezes: the lock is lost'
lived=$((($(cat "$dir/beat") - stopped) / 1000000))
above 3000 "$lived" 'and the child did not outlive the ttl (ms)'
like "$(cat "$dir/err")" '*could not be renewed in time*' 'the reason is told'
kill -CONT "$(pid a)"
under -w 30s frozen -- true
is $? 0 'thawed, it grants again'

"$hf" run --ttl 3s line -- sh -c "touch '$dir/held'; exec sleep 60" &
holder=$!
eventually 20 test -e "$dir/held"
under -w 30s line -- true &
waiter=$!
eventually 20 eval '"$hf" list --json | grep -q "\"line\".*\"waiters\": *1"'
ok $? 'a listing shows the waiter'
kill -TERM $holder
wait $waiter
is $? 0 'which has its turn when the holder ends'
wait $holder

zk_stop a KILL
out=$("$hf" run -n job -- true 2>&1)
is $? 69 'no server: 69'
like "$out" '*no server answers*' 'and a sentence'
done_testing
