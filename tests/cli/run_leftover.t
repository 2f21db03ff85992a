#!/bin/bash
# Processes that the command leaves behind.
set -u
. "$(dirname "$0")/lib.sh"

cat >"$dir/daemon" <<END
#!/bin/sh
echo \$\$ >$dir/agent
exec env --default-signal=INT sleep 60
END
chmod +x "$dir/daemon"
agent="setsid $dir/daemon &
    while [ ! -s $dir/agent ]; do sleep 0.02; done; exit 4"

start "$hf" run job -- sh -c "$agent" 2>"$dir/err"
holder=$pid
within 10 grep -q left "$dir/err"
err=$(cat "$dir/err")
like "$err" "sh ended but left pid $(cat "$dir/agent") \(sleep\) running" 'wait: names who is left'
alive "$holder" && ! is_free job
ok $? 'wait: the lock stays held'
kill "$(cat "$dir/agent")"
ended "$holder"
is "$rc" 4 "wait: the command's code in the end"
is_free job
ok $? 'wait: the lock is free then'

# A signal to us while we wait for them is for them.
rm -f "$dir/agent"
start "$hf" run job -- sh -c "$agent" 2>"$dir/err"
within 10 grep -q left "$dir/err"
kill -TERM "$pid"
ended "$pid"
is "$rc" 4 'wait: TERM reaches those who are left'

rm -f "$dir/agent"
run "$hf" run --leftover term job -- sh -c "$agent"
is "$rc" 4 "term: the command's code"
dead "$(cat "$dir/agent")"
ok $? 'term: nobody is left'
: >"$dir/herd"
run "$hf" run --leftover term --grace 200ms job -- sh -c "
    $(dirname "$0")/helpers/herd.pl 3 $dir/herd & while [ \"\$(wc -l <$dir/herd)\" -lt 4 ]; do
    sleep 0.05; done"
is "$rc" 0 'term: also for those who ignore TERM'
# shellcheck disable=SC2046
dead $(cat "$dir/herd")
ok $? 'term: they are dead'

rm -f "$dir/agent"
run "$hf" run --leftover release job -- sh -c "$agent"
is "$rc" 4 "release: the command's code"
left=$(cat "$dir/agent")
alive "$left"
ok $? 'release: the process goes on'
is_free job
ok $? 'release: the lock is free'
kill -KILL "$left"

# Ctrl-C, when only those are left.
rm -f "$dir/agent"
(within 10 grep -q 'but left' "$dir/screen" && printf '\003' && sleep 0.5) |
    script -qefc "$hf run job -- sh -c \"$agent\"; echo rc \$?" "$dir/screen" >/dev/null
dead "$(cat "$dir/agent")"
ok $? 'wait: Ctrl-C reaches those who are left, whatever their session'
kill -KILL "$(cat "$dir/agent")" 2>/dev/null

# What ends by itself right away is not worth a word.
run "$hf" run job -- sh -c 'sleep 0.05 &'
is "$rc/$err" 0/ 'wait: a process that is just ending is not named'

done_testing
