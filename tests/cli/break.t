#!/bin/bash
# holdfast break, on the embedded store: who is asked, who is told, and what becomes of jobs.
set -u
. "$(dirname "$0")/cmd.sh"

token_of() { holdfast status "$1" --json | jq .token; }
held() { holdfast status --held "$1" >/dev/null; }
line_of() { holdfast status "$1" --json | jq -e '.waiters > 0' >/dev/null; }

# usage
run holdfast break
refused 64 'name of a lock is missing' 'a name is needed'
run holdfast break nobody
refused 64 '--token is required' 'without a terminal the token is needed'
run holdfast break nobody --token 5
refused 1 'is not held: nothing was broken' 'nothing is held'
run holdfast break nobody --token 5 --reason "$(printf 'x%.0s' $(seq 161))"
refused 64 'at most 160 bytes' 'a reason has a limit'
run holdfast break nobody --token 0
refused 64 'only be broken at once' 'a foreign holder, and not now'

# a job: TERM, its grace, exit 123, and events
start "$hf" run --ttl 3s --events "$dir/events" --metrics "$dir/metrics" job -- \
    sh -c 'trap "echo term >\"$1\"; exit 0" TERM; while :; do sleep 0.05; done' - "$dir/told" 2>"$dir/job.err"
job=$pid
within 10 held job
token=$(token_of job)
start "$hf" run -w 60s job -- touch "$dir/next" 2>/dev/null
next=$pid
within 10 line_of job
run holdfast break job --token $((token + 1))
refused 1 'with another token' 'another token breaks nothing'
run holdfast break job --token "$token" --reason $'two\tlines\n'
is "$rc" 0 'it is broken'
has "$out" "broke \"job\", held by " 'which is said'
run holdfast break job --token "$token"
has "$out" 'broken already' 'a second time does no harm'
run holdfast status job
like "$out" 'broken     by .*@.*, .* ago: two' 'status tells by whom and why'
run holdfast list
has "$out" '(broken) ' 'list marks it'
ended "$job"
is "$rc" 123 'the job ends with 123'
is "$(cat "$dir/told")" term 'by TERM'
like "$(cat "$dir/job.err")" '"job" was broken by .*@.*: two.lines.; ending sh' 'and says by whom'
ended "$next"
is "$rc" 0 'the next one runs'
like "$(jq -r 'select(.event == "lost").reason' "$dir/events")" 'was broken by .*: two' 'the event says it, too'

# once: told to end, and not again by itself
start "$hf" once --ttl 3s key -- sleep 60 2>"$dir/once.err"
once=$pid
within 10 held key
run holdfast break key --token "$(token_of key)" --reason stop
ended "$once"
is "$rc" 123 'once ends with 123'
like "$(cat "$dir/once.err")" '"key" was broken by .*: stop' 'and says by whom'
run holdfast once --show key --json
json '(if type == "array" then .[0] else . end) | .state == "failed" and .failures == 0' \
    'it is on record that it was told to end, and is no failure of the job'
run holdfast once key -- true
is "$rc" 0 'it can be run again'

# elect: the leader stands again
start "$hf" elect --ttl 3s post -- sh -c 'echo "$HOLDFAST_TERM" >>"$1"; sleep 60' - "$dir/terms" 2>"$dir/elect.err"
elect=$pid
within 10 lines "$dir/terms" 1
run holdfast break post --token "$(token_of post)"
within 15 lines "$dir/terms" 2
ok $? 'a leader that was broken stands again'
like "$(cat "$dir/elect.err")" '"post" was broken by' 'and says so'
kill -TERM "$elect"

# keep: the script is signalled
cat >"$dir/script" <<'END'
trap 'echo term >"$1"; exit 0' TERM
eval "$("$2" keep --ttl 3s --pid $$ kept)" || exit
while :; do sleep 0.05; done
END
start bash "$dir/script" "$dir/kept" "$hf" 2>"$dir/keep.err"
script=$pid
within 10 held kept
run holdfast break kept --token "$(token_of kept)" --reason enough
ended "$script"
is "$(cat "$dir/kept")" term 'keep: the script gets TERM'
within 5 grep -q '"kept" was broken by .*: enough' "$dir/keep.err"
ok $? 'and it is said why'

# detached: nobody hears
eval "$(holdfast acquire -n --ttl 1h loose | sed 's/^/export /')"
run holdfast break loose --token "$HOLDFAST_TOKEN"
has "$out" 'is detached, so nobody hears of it before its next renewal; it ends in' 'detached: nobody hears'
has "$out" '--now' 'and --now is named'
run holdfast renew
refused 123 'was broken by' 'its renewal is refused'
run holdfast release
is "$rc" 0 'its release works'
eval "$(holdfast acquire -n --ttl 1h loose | sed 's/^/export /')"
run holdfast break loose --token "$HOLDFAST_TOKEN" --now
is "$rc" 0 'with --now'
has "$out" 'two may be at work' 'which is said'
run holdfast run -n loose -- true
is "$rc" 0 'it is free at once'
run holdfast renew
is "$rc" 123 'and lost for the one who had it'
unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER

# on a terminal one is asked
start "$hf" run ask -- sleep 60
asked=$pid
within 10 held ask
on_terminal() { script -qefc "$1" "$dir/screen" >/dev/null; }
printf 'n\n' | on_terminal "$hf break ask"
is $? 1 'on a terminal: no'
like "$(cat "$dir/screen")" 'ask: held' 'the holder is shown'
like "$(cat "$dir/screen")" 'Break this hold\?' 'and one is asked'
holdfast status ask --json | jq -e '.broken == null' >/dev/null
ok $? 'nothing is broken'
printf 'y\n' | on_terminal "$hf break ask"
is $? 0 'on a terminal: yes'
holdfast status ask --json | jq -e '.broken.by | test("@")' >/dev/null
ok $? 'it is broken'
# What was shown is what is meant, however long the answer takes.
start "$hf" run --label one swap -- sleep 60
one=$pid
within 10 held swap
rm -f "$dir/screen"
{
    within 20 grep -qs 'Break this hold' "$dir/screen"
    kill -TERM "$one"
    within 20 eval '! held swap'
    holdfast acquire -n --ttl 1h --label two swap >/dev/null
    echo y
    sleep 1
} | script -fqec "$hf break swap" "$dir/screen" >/dev/null
is $? 1 'on a terminal: yes, when it has changed hands'
like "$(cat "$dir/screen")" 'with another token: nothing was broken' 'which is said'
holdfast status swap --json | jq -e '.broken == null and .label == "two"' >/dev/null
ok $? 'and the next hold is not broken'
on_terminal "$hf break ask --yes" </dev/null
is $? 0 'with --yes nobody is asked'
kill -TERM "$asked"
ended "$asked"
done_testing
