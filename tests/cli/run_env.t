#!/bin/bash
# What the command finds: environment, descriptors, stdin, signal settings.
set -u
. "$(dirname "$0")/lib.sh"

export HOLDFAST_NAME=stale HOLDFAST_TOKEN=1 HOLDFAST_OWNER=stale HOLDFAST_LOST_FD=77
run "$hf" run -n 'my job' -- sh -c 'echo "$HOLDFAST_NAME/$HOLDFAST_STORE/$HOLDFAST_TOKEN"'
like "$out" "^my job/file:$dir/store/[0-9]+\$" 'name, store and token are given'
token=${out##*/}
[ "$token" -gt 1 ]
ok $? 'inherited values are overwritten'
run "$hf" run -n 'my job' -- sh -c 'echo "$HOLDFAST_TOKEN"'
[ "$out" -gt "$token" ]
ok $? 'the next token is larger'
run "$hf" run -n job -- sh -c 'echo "${HOLDFAST_OWNER-none}"'
is "$out" none 'the owner of some other lease is not passed on'
unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_LOST_FD

run "$hf" run -n job -- sh -c "exec $hf status job"
like "$out" 'job' 'HOLDFAST_STORE leads the child to the same store'
(cd "$dir" && mkdir -p sub && HOLDFAST_STORE=file:relative run "$hf" run -n job -- \
    sh -c "cd sub && $hf run -n job -- echo reached")
is "$(cat "$dir/out")" reached 'also from another directory'

is "$(echo hello | "$hf" run -n job -- cat)" hello 'stdin passes through'
is "$("$hf" run -n job -- sh -c 'cat <&5' 5<<<five)" five 'other descriptors do, too'
"$hf" run -n job -- sh -c '[ -t 0 ] || exec >&-' >/dev/null
is $? 0 'stdout can be closed'
is "$("$hf" run -n job -- sh -c 'read -r line || echo eof' <&-)" eof \
    'stdin may be closed from the start'

run "$hf" run -n job -- sh -c '[ -p /dev/fd/$HOLDFAST_LOST_FD ] && ls /proc/self/fd | wc -l'
is "$rc" 0 'HOLDFAST_LOST_FD is a pipe'

run sh -c "trap '' USR1 HUP; exec $hf run -n job -- grep SigIgn /proc/self/status"
ignored=$((16#${out##*[!0-9a-f]}))
is $((ignored & (1 << 9 | 1 << 0))) $((1 << 9 | 1 << 0)) 'what was ignored stays ignored'
run "$hf" run -n job -- grep -E 'SigBlk|SigIgn' /proc/self/status
run_lines=$out
run grep -E 'SigBlk|SigIgn' /proc/self/status
is "$run_lines" "$out" 'signals are as without us'
run env --ignore-signal=CHLD "$hf" run -n job -- sh -c 'exit 5'
is "$rc" 5 'an ignored SIGCHLD does not hide the exit code'
run env --ignore-signal=PIPE "$hf" run -n job -- grep SigIgn /proc/self/status
is $((16#${out##*[!0-9a-f]} & 1 << 12)) $((1 << 12)) 'an ignored SIGPIPE is passed on'

# A process that had children before it became us keeps them.
sh -c "sleep 0.3 & exec $hf run -n job -- true"
is $? 0 'children from before the exec do not matter'

done_testing
