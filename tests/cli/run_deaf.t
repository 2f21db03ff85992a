#!/bin/bash
# Nobody reads what we say: stderr is a pipe that is full. Nothing waits for it, neither the end of
# the command nor the release of the lock nor our own end.
# run: first
set -u
. "$(dirname "$0")/lib.sh"
herd=$(dirname "$0")/helpers/herd.pl

mkfifo "$dir/deaf" "$dir/hold"
exec 8<>"$dir/deaf"
fill() {
    dd if=/dev/zero of="$dir/deaf" oflag=nonblock bs=4096 count=1000 status=none 2>/dev/null
}
fill

# Ends within SECONDS with CODE? If not, it is ended.
ends() { # SECONDS CODE DESCRIPTION : $pid
    within "$1" dead "$pid"
    ok $? "$3: comes to an end"
    kill -KILL "$pid" 2>/dev/null
    ended "$pid"
    is "$rc" "$2" "$3: $2"
}

# The lease is taken away; the keeper hears of it after two seconds, and the deadline is at six.
cat >"$dir/lose" <<END
owner=\$(printf '%s' "\${HOLDFAST_HELD##* }" | cut -d, -f3)
HOLDFAST_OWNER=\$owner $hf release "\$HOLDFAST_NAME" 2>/dev/null
echo \$\$ >$dir/command
exec sleep 60
END
start "$hf" run --ttl 6s --grace 500ms job -- sh "$dir/lose" 2>&8
within 10 test -s "$dir/command"
before=$(date +%s%N)
within 10 dead "$(cat "$dir/command")"
after=$((($(date +%s%N) - before) / 1000000))
[ "$after" -lt 4000 ]
ok $? "a lost lock: the command ends when the loss is known ($after ms)"
ends 5 123 'a lost lock'

# The watchdog is killed, and we have to end the tree ourselves.
start "$hf" run --ttl 20s job -- "$herd" 3 "$dir/herd" 2>&8
within 20 lines "$dir/herd" 4
kill -KILL "$(watchdog_of "$pid")"
# shellcheck disable=SC2046
within 5 dead $(cat "$dir/herd")
ok $? 'watchdog killed: the tree ends'
ends 5 125 'watchdog killed'

start "$hf" run --max-runtime 300ms job -- sleep 60 2>&8
ends 5 124 '--max-runtime'
start "$hf" run job -- "$dir/no-such-command" 2>&8
ends 5 127 'no such command'
start "$hf" run job -- sh -c 'sleep 1 & exit 3' 2>&8
ends 5 3 'processes left behind'
is_free job
ok $? 'the lock is free after all that'

# Waiting.
start "$hf" run job -- sh -c "echo up >$dir/up; read -r _ <$dir/hold"
holder=$pid
within 10 test -s "$dir/up"
start "$hf" run -n job -- true 2>&8
ends 5 75 'busy'
start "$hf" --store file:/dev/null/x run -n job -- true 2>&8
ends 5 64 'no store'
start "$hf" run job -- true 2>&8
sleep 1.5 # it wants to say for whom it waits
kill -TERM "$pid"
ends 5 143 'a signal while waiting'
start "$hf" run job -- true 2>&8
runner=$pid
start "$hf" acquire --ttl 1s job >"$dir/acquired" 2>&8
sleep 1.5
echo >"$dir/hold"
ended "$holder"
acquirer=$pid pid=$runner
ends 5 0 'the lock comes while we want to say for whom we wait'
pid=$acquirer
ends 5 0 'acquire, the same'
like "$(cat "$dir/acquired")" '^export HOLDFAST_TOKEN' 'acquire, the same: has its lease'

# Whoever reads late still gets everything, in whole lines.
start "$hf" run --max-runtime 100ms --grace 100ms job -- sleep 60 2>&8
sleep 0.6
timeout 3 cat <&8 >"$dir/heard"
like "$(tr -d '\0' <"$dir/heard")" '^holdfast: sleep has run for 100ms, as long as --max-runtime' \
    'who reads late gets the message'
ends 5 124 'a late reader'

# Without a thread to speak we still do, as long as somebody listens.
if strace -f -o /dev/null true 2>/dev/null; then
    export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
    dumb=(strace -f -qq -o /dev/null -e "trace=clone3" -e "inject=clone3:error=EAGAIN")
    run "${dumb[@]}" "$hf" run job -- "$dir/no-such-command"
    like "$rc/$err" '^127/holdfast: .*/no-such-command: command not found' 'no thread: said anyway'
    fill
    start "${dumb[@]}" "$hf" run job -- "$dir/no-such-command" 2>&8
    ends 5 127 'no thread and nobody listens'
else
    skip 3 'cannot trace a process here'
fi

done_testing
