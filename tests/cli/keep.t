#!/bin/bash
# holdfast keep: a lock for a script, renewed in the background until the script ends.
# run: first
set -u
. "$(dirname "$0")/cmd.sh"
build=$(cd "${BUILD:-build}" && pwd)

keep="eval \"\$($hf keep --pid \$\$ --ttl 600ms job)\" || exit"

script() { # TEXT... : a script with the lock, which tells its keeper and its own pid; in $pid
    local prelude=:
    case $1 in trap*) prelude=$1 && shift ;; esac # before anybody knows of it
    printf '%s\n' "$keep" "$prelude" "echo \$\$ \$HOLDFAST_KEEPER >$dir/who.new; mv $dir/who.new $dir/who" "$@" >"$dir/script"
    rm -f "$dir/who"
    start sh "$dir/script" 2>"$dir/words"
    within 20 test -s "$dir/who"
    # shellcheck disable=SC2034
    read -r self keeper <"$dir/who"
}
words() { cat "$dir/words"; }
said() { grep -q -- "$1" "$dir/words"; }
gone() { # every process of the keeper : no longer there
    dead "$keeper" && ! pgrep -f -- "keep --pid $self " >/dev/null
}

# To the end of the script, and no longer.
mkfifo "$dir/go"
script "echo \$HOLDFAST_NAME \$HOLDFAST_TOKEN >$dir/told" "read -r _ <$dir/go"
run holdfast status job --json
json '.held and (.detached | not)' 'the script has the lock'
is "$(cat "$dir/told")" "job $(jq .token "$dir/out")" 'and knows its token'
token=$(jq .token "$dir/out")
sleep 2 # three ttls
run holdfast status job --json
json ".held and .token == $token" 'and has it still after three ttls'
echo >"$dir/go"
ended "$pid"
is "$rc" 0 'the script ends as it likes'
within 5 is_free job
ok $? 'and the lock is free'
within 5 gone
ok $? 'nothing is left behind'
is "$(words)" '' 'and nothing was said'

# However the script ends.
script "read -r _ <$dir/go"
kill -KILL "$self"
ended "$pid"
within 5 is_free job
ok $? 'a script that was killed: the lock is free'
within 5 gone
ok $? 'and nothing is left behind'

# Given back before that.
script "kill \$HOLDFAST_KEEPER; read -r _ <$dir/go"
within 5 is_free job
ok $? 'TERM to the keeper releases the lock'
alive "$self"
ok $? 'and the script goes on'
within 5 gone
ok $? 'nothing is left behind'
echo >"$dir/go"
ended "$pid"
is "$rc:$(words)" 0: 'to its own end'

# Descriptors of the script stay the script's.
printf '%s\n' "exec 9>$dir/nine" "$keep" "ls -l /proc/\$HOLDFAST_KEEPER/fd >$dir/fds" >"$dir/script"
sh "$dir/script"
unlike "$(cat "$dir/fds")" '/nine' 'the keeper inherits nothing of the script'

# The keeper is killed, or stopped: the script hears of it in time.
script "trap 'echo told >$dir/told; exit 9' TERM" 'while :; do sleep 0.05; done'
kill -KILL "$keeper"
ended "$pid"
is "$rc:$(cat "$dir/told")" 9:told 'a keeper that was killed: the script gets TERM'
like "$(words)" "the keeper of lock \"job\" is gone" 'and it is said'
rm "$dir/told"
keep=${keep/600ms/3s}
script "trap 'echo told >$dir/told; read -r _ <$dir/go; exit 9' TERM" 'while :; do sleep 0.05; done'
kill -KILL "$keeper"
within 10 test -s "$dir/told"
sleep 0.3
is_free job
is $? 75 'a keeper that was killed: nobody else has the lock while the script is there'
echo >"$dir/go"
ended "$pid"
within 2 is_free job
ok $? 'and right after that it is free'
rm "$dir/told"
script "trap 'echo told >$dir/told; exit 9' TERM" 'while :; do sleep 0.05; done'
kill -STOP "$keeper"
ended "$pid"
is "$rc:$(cat "$dir/told")" 9:told 'a keeper that was stopped: the script gets TERM'
run holdfast status job --json
json '.held' 'before its lease is over'
kill -CONT "$keeper"
within 10 gone
ok $? 'a keeper that goes on then ends'
script "trap '' TERM" 'while :; do sleep 0.05; done'
kill -STOP "$keeper"
ended "$pid"
is "$rc" 137 'a script that does not listen is killed'
kill -CONT "$keeper"
within 10 gone
keep=${keep/3s/600ms}

# The lock is lost.
export HOLDFAST_STORE_PATH=$build/tests/plugins HOLDFAST_STORE=moody:$dir/mood
: >"$dir/mood"
script "trap 'exit 9' TERM" 'while :; do sleep 0.05; done'
echo 'renew lost' >"$dir/mood"
ended "$pid"
is "$rc" 9 'a lock that is lost: the script gets TERM'
like "$(words)" "lock \"job\" was lost: another owner holds the lock; sending TERM to pid $self \\(sh\\)" 'and it is said'
: >"$dir/mood"
keep=${keep/--ttl/--on-loss warn --ttl}
script "read -r _ <$dir/go"
echo 'renew lost' >"$dir/mood"
within 10 said "lock \"job\" was lost"
ok $? '--on-loss warn: it is said'
alive "$self"
ok $? '--on-loss warn: and nothing else'
echo >"$dir/go"
ended "$pid"
is "$rc" 0 '--on-loss warn: the script ends as it likes'
keep=${keep/--on-loss warn --ttl/--on-loss kill --ttl}
: >"$dir/mood"
script "trap '' TERM" 'while :; do sleep 0.05; done'
echo 'renew unreachable' >"$dir/mood"
ended "$pid"
is "$rc" 137 '--on-loss kill: the script is killed'
within 5 gone
ok $? 'nothing is left behind'
unset HOLDFAST_STORE_PATH
export HOLDFAST_STORE=file:$dir/store

# Not taken: what is evaluated fails.
holdfast acquire --ttl 1h taken >"$dir/lease"
run holdfast keep -n --pid $$ taken
is "$rc:$out" '75:(exit 75)' 'busy'
run holdfast keep -n -E 3 --pid $$ taken
is "$rc:$out" '3:(exit 3)' 'busy, with another code'
run holdfast keep taken
refused 64 '--pid $$' 'no --pid: says what to write'
is "$out" '(exit 64)' 'and what is evaluated fails'
for bad in 0 1 999999999 -1 x; do
    run holdfast keep --pid="$bad" taken
    is "$rc" 64 "--pid=$bad is refused"
done
run bash -c "exec $hf keep --pid \$BASHPID own"
refused 64 'this command itself' 'its own number is refused: the lock would be free at once'
run holdfast keep --ttl 3s --grace 2s --pid $$ taken
refused 64 'too short' 'a grace that leaves no time'
is "$(bash -c "eval \"\$($hf keep -n --pid \$\$ taken 2>/dev/null)\" || echo \$?")" 75 'as a script sees it'
run sh -c "$hf keep --pid \$\$ full >/dev/full; echo \$?"
is "$out" 125 'nobody reads what it prints: 125'
within 5 is_free full
ok $? 'and the lock is free'

# Told to stop while it waits; or the script ends meanwhile.
for signal in TERM INT; do
    start env --default-signal="$signal" "$hf" keep --pid $$ taken >"$dir/said" 2>/dev/null
    within 10 sh -c "$hf status taken --json | grep -q '\"waiters\": 1,'"
    kill -"$signal" "$pid"
    ended "$pid"
    is "$rc:$(cat "$dir/said")" "$((128 + $(kill -l $signal))):(exit $((128 + $(kill -l $signal))))" \
        "$signal while it waits"
done
start sleep 100
script_pid=$pid
start "$hf" keep --pid "$script_pid" taken >"$dir/said" 2>/dev/null
within 10 sh -c "$hf status taken --json | grep -q '\"waiters\": 1,'"
kill -KILL "$script_pid"
ended "$pid"
[ "$rc" -ne 0 ]
ok $? 'the script is gone while it waits: so is the waiter'
keeper=$pid self=$script_pid
within 10 gone
ok $? 'nothing is left behind'

done_testing
