#!/bin/bash
# holdfast elect: one leads, the others stand by.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

log=$dir/log
# A leader's command: says that it is there, and stays.
lead="echo \"\$CANDIDATE \$HOLDFAST_TERM\" >>$log; exec sleep 600"
candidate() { # NAME [OPTION...] : stands for "sched"; its process in $pid
    local name=$1
    shift
    start env CANDIDATE="$name" "$hf" elect --label "$name" "$@" sched -- sh -c "$lead" 2>>"$dir/said"
}
waiting() { "$hf" status sched --json | grep -q "\"waiters\": $1,"; }
terms() { awk '{ print $1 }' "$log" | tr '\n' ' '; }
leads() { [ "$(tail -n 1 "$log" | cut -d ' ' -f 1)" = "$1" ]; }

candidate a
a=$pid
within 10 lines "$log" 1
ok $? 'the first candidate leads'
candidate b
b=$pid
within 10 waiting 1
candidate c
c=$pid
within 10 waiting 2
is "$(terms)" 'a ' 'the others stand by'
is "$(awk '{ print $2 }' "$log")" "$("$hf" status sched --json | sed 's/.*"token": \([0-9]*\).*/\1/')" \
    'HOLDFAST_TERM is the token'

# A clean end hands over at once, whatever the ttl (30s here).
before=$SECONDS
kill -TERM "$a"
ended "$a"
is "$rc" 143 'TERM ends the leader, and its command'
within 10 leads b
ok $? 'the next in the queue leads'
[ $((SECONDS - before)) -lt 15 ]
ok $? 'at once'
# So does a crash, where the store can tell.
before=$SECONDS
kill -KILL "$b"
ended "$b"
within 10 leads c
ok $? 'when a leader is killed, its command is ended and the next one leads'
[ $((SECONDS - before)) -lt 15 ]
ok $? 'at once, in a store with crash release'
awk '{ if ($2 <= last) exit 1; last = $2 }' "$log"
ok $? 'terms rise'
kill -TERM "$c"
ended "$c"
is_free sched
ok $? 'then nobody leads'

# A signal while standing by.
"$hf" run sched -- sleep 600 &
holder=$!
started="$started $holder"
held() { "$hf" status --held sched >/dev/null; }
within 10 held
candidate d
within 10 waiting 1
kill -TERM "$pid"
ended "$pid"
is "$rc" 143 'TERM ends one who stands by'
kill -TERM "$holder"
ended "$holder"

# The lock is given back when the whole tree is gone.
start "$hf" elect tree -- sh -c "trap 'exit 0' TERM; (trap '' TERM; echo \$\$ >$dir/up; while [ ! -e $dir/go ]; do sleep 0.05; done) & wait" 2>/dev/null
within 10 test -s "$dir/up"
kill -TERM "$pid"
sleep 0.5
"$hf" status --held tree >/dev/null
ok $? 'a leader that is told to end does not resign while something of its tree lives'
touch "$dir/go"
ended "$pid"
is "$rc" 0 'it ends with the exit code of the command'
is_free tree
ok $? 'and has resigned'

# Frozen: within the ttl.
: >"$log"
start env CANDIDATE=e "$hf" elect --ttl 1s --grace 100ms sched -- sh -c "$lead" 2>/dev/null
e=$pid
within 10 lines "$log" 1
start env CANDIDATE=f "$hf" elect --ttl 1s --grace 100ms sched -- sh -c "$lead" 2>/dev/null
f=$pid
within 10 waiting 1
before=$SECONDS
kill -STOP "$e"
within 30 leads f
ok $? 'when the leader freezes, the next one leads'
[ $((SECONDS - before)) -lt 10 ]
ok $? 'within the ttl, or little more'
kill -CONT "$e"
within 20 waiting 1
ok $? 'who thaws stands by again'
kill -KILL "$f"
within 10 leads e
ok $? 'and leads when it is its turn: with a term of its own'
awk '{ if ($2 <= last) exit 1; last = $2 }' "$log"
ok $? 'and a higher one'
kill -TERM "$e"
ended "$e"

# The policy of restart.
count() { if [ -e "$dir/$1" ]; then wc -l <"$dir/$1"; else echo 0; fi; }
run "$hf" elect --restart no policy -- sh -c "echo x >>$dir/no; exit 3"
is "$rc:$(count no)" 3:1 '--restart no: once, and its exit code'
run "$hf" elect --restart on-failure policy -- sh -c "echo x >>$dir/fail; [ \$(wc -l <$dir/fail) -ge 2 ]"
is "$rc:$(count fail)" 0:2 '--restart on-failure: until it succeeds'
# The watchdog closes what is not its own while CMD starts.
start "$hf" elect policy -- sh -c "sleep 0.3; ls /proc/\$PPID/fd /proc/\$(cut -d ' ' -f 4 /proc/\$PPID/stat)/fd | wc -l >>$dir/always" 2>"$dir/said"
within 20 lines "$dir/always" 3
ok $? 'always, the default: again'
is "$(sed -n 3p "$dir/always")" "$(sed -n 2p "$dir/always")" 'and no descriptor is left open by a term'
kill -TERM "$pid"
ended "$pid"
is "$rc" 143 'until it is told to end, between two terms as well'
like "$(cat "$dir/said")" '^holdfast: term [0-9]+ of "policy" was over after [0-9.]+m?s \(exit code 0\); standing again in [12][0-9.]*s$' \
    'which it says'

# A leader that fails at once does not spin, and lets the others lead.
start "$hf" elect --events "$dir/ev" spin -- sh -c "echo x >>$dir/spins; exit 1" 2>/dev/null
spinner=$pid
within 10 lines "$dir/spins" 1
start "$hf" elect --label good spin -- sh -c "echo good >>$dir/good; exec sleep 600" 2>/dev/null
good=$pid
within 10 lines "$dir/good" 1
ok $? 'while a leader that failed pauses, another leads'
sleep 4
[ "$(count spins)" -le 3 ]
ok $? 'it has not spun'
like "$(grep backing_off "$dir/ev")" '"pause_ms": (1[0-9]{3}|2000)\}' 'the pause is an event'
kill -TERM "$spinner" "$good"
ended "$spinner"
ended "$good"

# Signals that ask for something else than an end.
start env CANDIDATE=g "$hf" elect hup -- sh -c "trap 'echo hup >>$dir/hup' HUP; echo up >>$dir/hupup; while :; do sleep 0.1; done" 2>/dev/null
within 10 lines "$dir/hupup" 1
kill -HUP "$pid"
within 10 test -s "$dir/hup"
ok $? 'HUP is forwarded'
alive "$pid"
ok $? 'and the leader goes on'
kill -TERM "$pid"
ended "$pid"
is "$rc:$(count hupup)" 143:1 'TERM after that ends it: there is no second term'

# What is refused.
run "$hf" elect x
is "$rc" 64 'a command is needed'
run "$hf" elect --restart maybe x -- true
is "$rc" 64 'an unknown policy'
run "$hf" elect --address '' x -- true
is "$rc" 64 'an empty address'
run "$hf" elect --address $'a\nb' x -- true
is "$rc" 64 'an address with control characters'
run "$hf" elect --on-loss warn x -- true
is "$rc" 64 '--on-loss warn would leave two leaders'
run "$hf" run x -- "$hf" elect x -- true
is "$rc" 75 'below a hold of the same lock'
like "$err" 'is held by a process above this one' 'in a sentence'
run "$hf" elect --restart no x -- "$dir/none"
is "$rc" 127 'a command that is not there'

done_testing
