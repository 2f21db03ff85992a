#!/bin/bash
# A nested run under a hold that ends: it hears of that, and ends its job.
set -u
. "$(dirname "$0")/lib.sh"

# An outer run that leaves a nested one behind and gives the lock away.
left_behind() { # DESCRIPTION PREFIX OPTION...
    local what=$1 prefix=$2
    shift 2
    rm -f "$dir/up" "$dir/end" "$dir/token"
    run "$hf" run --leftover release a -- sh -c "
        $prefix $hf run $* --grace 500ms a -- sh -c 'echo \$HOLDFAST_TOKEN >$dir/token; echo \$\$ >$dir/up
            exec sleep 60' 2>$dir/end &
        while [ ! -s $dir/up ]; do sleep 0.02; done
        ps -o ppid= -p \$(ps -o ppid= -p \$(cat $dir/up)) >$dir/nested"
    is "$rc" 0 "$what: the outer run ends"
    nested=$(tr -d ' ' <"$dir/nested")
}

left_behind 'with the pipe' ''
within 10 dead "$(cat "$dir/up")" "$nested"
ok $? 'with the pipe: the nested job ends with the hold above it'
like "$(cat "$dir/end")" "lock \"a\" is no longer held by the process above; ending sh" 'with the pipe: and says why'

# As Python's subprocess does: nothing but the standard descriptors is inherited.
left_behind 'without the pipe' 'python3 -c "
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))"'
within 15 dead "$(cat "$dir/up")" "$nested"
ok $? 'without the pipe: the nested job ends with the hold above it'
like "$(cat "$dir/end")" "lock \"a\" is no longer held by the process above; ending sh" 'without the pipe: and says why'

# The nested supervisor is stopped: its watchdog hears of it.
rm -f "$dir/up"
run "$hf" run --leftover release a -- sh -c "
    setsid $hf run --grace 500ms a -- sh -c 'echo \$\$ >$dir/up; exec sleep 60' 2>/dev/null &
    while [ ! -s $dir/up ]; do sleep 0.02; done
    kill -STOP \$!; echo \$! >$dir/nested"
within 10 dead "$(cat "$dir/up")"
ok $? 'a nested run that is stopped: its job ends'
kill -KILL "$(cat "$dir/nested")" "$(cat "$dir/up")" 2>/dev/null

left_behind 'with --on-loss warn' '' --on-loss warn
within 10 grep -q 'no longer held' "$dir/end"
ok $? 'with --on-loss warn: the loss is told'
alive "$(cat "$dir/up")"
ok $? 'with --on-loss warn: and the job goes on'
kill "$(cat "$dir/up")"
within 10 dead "$nested"

# The exit code of the nested run.
rm -f "$dir/up"
run "$hf" run --leftover release a -- sh -c "
    (setsid sh -c '$hf run a -- sh -c \"echo up >$dir/up; exec sleep 60\"; echo \$? >$dir/code' 2>/dev/null) &
    while [ ! -s $dir/up ]; do sleep 0.02; done"
within 10 test -s "$dir/code"
is "$(cat "$dir/code")" 123 'the exit code is that of a lost lock'

# A nested run that ends before the outer one does not mind.
run "$hf" run a -- sh -c "$hf run a -- sh -c 'exit 4'; echo \$?"
is "$out/$err" 4/ 'a nested run under a hold that lasts'

done_testing
