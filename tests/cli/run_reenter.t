#!/bin/bash
# A lock that a process above us holds is not waited for.
set -u
. "$(dirname "$0")/lib.sh"

run timeout 20 "$hf" run a -- "$hf" run a -- sh -c 'echo "in $HOLDFAST_NAME"'
is "$rc/$out" '0/in a' 'a in a runs at once'
run timeout 20 "$hf" run a -- sh -c "echo \$HOLDFAST_TOKEN; $hf run a -- sh -c 'echo \$HOLDFAST_TOKEN'"
is "$(echo "$out" | uniq | wc -l)" 1 'with the token of the hold'
run timeout 20 "$hf" run a -- "$hf" run b -- "$hf" run a -- \
    sh -c 'echo "in $HOLDFAST_NAME"; exit 6'
is "$rc/$out" '6/in a' 'a in b in a runs at once, and its exit code comes through'
run timeout 20 "$hf" run a -- "$hf" run -n b -- "$hf" run a -- sh -c "$hf run -n b -- echo deep"
is "$rc/$out" 0/deep 'b in a in b in a as well'
run "$hf" run a -- sh -c "$hf run a -- true; unset HOLDFAST_HELD; $hf run -n a -- true"
is "$rc" 75 'a lock that is entered again is still held after that'
like "$err" 'held by' 'by the outer run'

run "$hf" run a -- "$hf" run --no-reenter a -- touch "$dir/ran"
is "$rc" 75 '--no-reenter gives 75'
like "$err" "lock \"a\" is held by a process above" 'and says why'
[ ! -e "$dir/ran" ]
ok $? 'and runs nothing'

# The descriptor belongs to the lock that is entered again, not to the one in between.
run "$hf" run a -- sh -c "readlink /proc/self/fd/\$HOLDFAST_LOST_FD
    $hf run b -- sh -c 'readlink /proc/self/fd/\$HOLDFAST_LOST_FD
        $hf run a -- sh -c \"readlink /proc/self/fd/\\\$HOLDFAST_LOST_FD\"'"
is "$(echo "$out" | sed -n 3p)" "$(echo "$out" | sed -n 1p)" 'HOLDFAST_LOST_FD is that of a again'
[ "$(echo "$out" | sed -n 2p)" != "$(echo "$out" | sed -n 1p)" ]
ok $? 'and b had another'

# A list that is no longer true.
run "$hf" run a -- sh -c 'echo "$HOLDFAST_HELD"'
stale=$out
start "$hf" run a -- sh -c "echo up >$dir/up; sleep 60"
within 10 test -s "$dir/up"
HOLDFAST_HELD=$stale run "$hf" run -n a -- true
is "$rc" 75 'a stale HOLDFAST_HELD is not believed'
for list in junk ',,,,,' "${stale%,*}" "$stale,more" '%zz,a,b,1,3,4' "$(printf '%05000d' 0)" \
    "${stale/,a,/,a,0}"; do
    HOLDFAST_HELD=$list run "$hf" run -n a -- true
    is "$rc" 75 "nor is '${list:0:20}...'"
done
HOLDFAST_HELD=$stale run "$hf" run -n c -- sh -c 'echo "$HOLDFAST_HELD"'
is "$rc" 0 'and does not hurt other locks'
like "$out" ',c,' 'which are listed'

done_testing
