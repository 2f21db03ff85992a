#!/bin/bash
# A store that is down, hangs or is in quarantine, at the start or later: a wait outlives it.
# run: first
set -u
. "$(dirname "$0")/lib.sh"
build=$(cd "${BUILD:-build}" && pwd)
export HOLDFAST_STORE_PATH=$build/tests/plugins HOLDFAST_STORE=moody:$dir/mood

mood() { # LINE... : how the store feels from now on
    printf '%s\n' "$@" >"$dir/mood.new"
    mv "$dir/mood.new" "$dir/mood"
}
said() { # TEXT
    grep -q -- "$1" "$dir/words"
}

# At the start.
for trouble in unreachable 'quarantine 60000'; do
    kind=${trouble% *}
    mood "open $trouble"
    run "$hf" run -n job -- true
    is "$rc" 69 "$kind, -n: 69 at once"
    is "$(grep -c '^holdfast: ' "$dir/err")" 1 "$kind, -n: one sentence"
    unlike "$err" 'waiting' "$kind, -n: nobody waits"
    run "$hf" acquire -n job
    is "$rc" 69 "$kind, acquire -n: 69 at once"
    is "$out" '(exit 69)' "$kind, acquire -n: what is evaluated fails"

    before=$SECONDS
    run "$hf" run -w 1.2s --events "$dir/events.$kind" job -- true
    is "$rc" 69 "$kind, -w: 69 in the end"
    is "$(jq -r '.event + " " + (.status // "")' "$dir/events.$kind" | tr '\n' ' ')" \
        "waiting HF_${kind^^} failed  ended  " "$kind, -w: and its events tell that it waited, and for what"
    [ $((SECONDS - before)) -ge 1 ]
    ok $? "$kind, -w: not before the wait is over"
    like "$err" '^holdfast: store moody: its open is .* today; waiting for at most [0-9.]+m?s' \
        "$kind, -w: says at once that it waits, and how long"

    for command in 'run job -- echo mine' 'acquire job'; do
        mood "open $trouble"
        # shellcheck disable=SC2086
        start "$hf" $command >"$dir/said" 2>"$dir/words"
        within 10 said 'today; waiting'
        ok $? "$kind, ${command%% *}: says at once that it waits"
        like "$(cat "$dir/words")" 'without limit.*-w' "$kind, ${command%% *}: and how to limit it"
        alive "$pid"
        ok $? "$kind, ${command%% *}: waits"
        mood
        ended "$pid"
        is "$rc" 0 "$kind, ${command%% *}: has the lock when the store is back"
        is "$(wc -l <"$dir/words")" 1 "$kind, ${command%% *}: says no more than that"
    done
done

# A candidate has no option that would limit its wait: none is advised.
mood 'open unreachable'
start "$hf" elect job -- true 2>"$dir/words"
within 10 said 'today; waiting without limit$'
ok $? 'elect: says that it waits without limit, and that is all'
kill -TERM "$pid"
ended "$pid"

# What does not pass is not waited for.
mood 'open denied'
run "$hf" run job -- true
is "$rc" 77 'denied: at once'

# A signal, while nobody answers or while we wait for the next try.
for state in hang unreachable; do
    mood "open $state"
    for command in 'run job -- true' 'acquire job'; do
        # shellcheck disable=SC2086
        start "$hf" $command >"$dir/said" 2>"$dir/words"
        [ "$state" = hang ] || within 10 said waiting
        sleep 0.3
        kill -TERM "$pid"
        ended "$pid"
        is "$rc" 143 "$state, ${command%% *}: TERM ends it"
    done
    is "$(cat "$dir/said")" '(exit 143)' "$state, acquire: what is evaluated fails"
done

# In the middle: the store was open, and then it does not answer.
for trouble in unreachable unknown 'quarantine 60000'; do
    kind=${trouble% *}
    mood "acquire $trouble"
    run "$hf" run -n job -- true
    is "$rc" 69 "later $kind, -n: 69 at once"
    run "$hf" run -w 0 job -- true
    is "$rc" 69 "later $kind, -w 0: 69 at once"
    for command in 'run job -- echo mine' 'acquire job'; do
        mood "acquire $trouble"
        # shellcheck disable=SC2086
        start "$hf" $command >"$dir/said" 2>"$dir/words"
        within 10 said 'today; waiting'
        ok $? "later $kind, ${command%% *}: says at once that it waits"
        mood
        ended "$pid"
        is "$rc" 0 "later $kind, ${command%% *}: has the lock when that is over"
    done
done
mood 'acquire quarantine 60000'
run "$hf" run -w 1.2s job -- true
is "$rc" 69 'a quarantine longer than the wait: 69'
like "$err" 'today; waiting for at most [0-9.]+m?s' 'and it was waited for'

# One limit for the store and the lock.
mood 'open unreachable' 'acquire unreachable'
(sleep 0.7 && mood 'acquire unreachable') &
before=$(date +%s%N)
run "$hf" run -w 1.5s job -- true
after=$(date +%s%N)
is "$rc" 69 'down, then silent: 69'
[ $(((after - before) / 1000000)) -ge 1400 ]
ok $? 'not before the limit'
wait

done_testing
