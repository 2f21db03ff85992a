#!/bin/bash
# The lock is lost while the command runs.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

# In the command's shell: ends the lease behind the back of the supervisor, which hears of it with
# the next renewal.
cat >"$dir/lose" <<END
owner=\$(printf '%s' "\${HOLDFAST_HELD##* }" | cut -d, -f3)
HOLDFAST_OWNER=\$owner $hf release "\$HOLDFAST_NAME"
END

run "$hf" run --ttl 700ms job -- sh -c 'sleep 2.5; echo "done"'
is "$rc/$out/$err" 0/done/ 'a lease is renewed, however long the command runs'
run "$hf" run --ttl 700ms job -- sh -c "sleep 1.5; $hf status job"
like "$out" 'held' 'and is held all the time'

run "$hf" run --ttl 2s job -- sh -c ". $dir/lose; sleep 60"
is "$rc" 123 'a lost lock gives 123'
like "$err" "lock \"job\" was lost: .*; ending sh" 'and says why'

run "$hf" run --ttl 2s --grace 200ms job -- sh -c "trap '' TERM; . $dir/lose
    while :; do sleep 0.1; done"
is "$rc" 123 'also if the command ignores TERM'

run "$hf" run --ttl 2s job -- sh -c "trap 'echo termed >$dir/termed; exit 0' TERM; . $dir/lose
    while :; do sleep 0.05; done"
is "$rc" 123 'also if it then exits with 0'
is "$(cat "$dir/termed" 2>/dev/null)" termed 'TERM gives it time to clean up'
rm -f "$dir/termed"

run "$hf" run --ttl 2s --on-loss kill job -- sh -c "trap 'echo termed >$dir/termed; exit 0' TERM
    . $dir/lose; while :; do sleep 0.05; done"
is "$rc" 123 '--on-loss kill: 123'
[ ! -e "$dir/termed" ]
ok $? '--on-loss kill: no TERM'

run "$hf" run --ttl 1s --on-loss warn job -- sh -c ". $dir/lose; sleep 2; echo survived"
is "$rc" 123 '--on-loss warn: 123 in the end'
is "$out" survived '--on-loss warn: the command goes on'
like "$err" 'was lost' '--on-loss warn: says so'

run "$hf" run job -- sh -c ". $dir/lose; echo done"
is "$rc" 123 '123 also if only the release finds out'
is "$out" 'done' 'the command was not disturbed then'

run "$hf" run --ttl 1s --on-loss warn job -- bash -c ". $dir/lose
    before=\$SECONDS; timeout 10 cat <&\$HOLDFAST_LOST_FD; echo eof after \$((SECONDS - before))"
like "$out" '^eof after [0-5]$' 'HOLDFAST_LOST_FD reads end-of-file on loss'

# Hard to end: forked twice, own sessions, ignoring TERM.
: >"$dir/herd"
run "$hf" run --ttl 2s --grace 300ms job -- sh -c "$(dirname "$0")/helpers/herd.pl 5 $dir/herd &
    while [ \"\$(wc -l <$dir/herd)\" -lt 6 ]; do sleep 0.05; done; . $dir/lose; wait"
is "$rc" 123 'a tree that is hard to end: 123'
# shellcheck disable=SC2046
dead $(cat "$dir/herd")
ok $? 'every process of it is dead when we return'

# Stopped processes see TERM too.
run "$hf" run --ttl 2s --grace 500ms job -- sh -c "
    sh -c 'trap \"echo termed >$dir/woken; exit\" TERM; kill -STOP \$\$; sleep 5' & . $dir/lose; wait"
is "$(cat "$dir/woken" 2>/dev/null)" termed 'a stopped process is woken to see TERM'

done_testing
