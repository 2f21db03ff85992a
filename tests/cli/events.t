#!/bin/bash
# --events: one line of JSON per event, whoever reads them.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

fields() { # FILE EVENT : the names of its first event of that kind, in order
    perl -MJSON::PP -ne 'my $e = eval { decode_json($_) } or next;
        next unless $e->{event} eq $ARGV_event; my @n = /"([a-z_]+)": /g; print "@n"; exit' \
        -s -- -ARGV_event="$2" "$1"
}
events() { # FILE : their kinds
    perl -MJSON::PP -ne 'print decode_json($_)->{event}, " "' "$1"
}
value() { # FILE EVENT FIELD : of the first event of that kind
    perl -MJSON::PP -CO -ne 'my $e = decode_json($_); next unless $e->{event} eq $kind;
        print $e->{$field}; exit' -s -- -kind="$2" -field="$3" "$1"
}

# The story of a run, and the names of its fields: programs rely on them.
run "$hf" run --events "$dir/ev" --label 'the "label"' job -- true
is "$rc:$err" 0: 'a run that tells its events'
is "$(events "$dir/ev")" 'acquired started exited released ended ' 'tells these'
is "$(fields "$dir/ev" acquired)" 'v at event lock store label token waited_ms ttl_ms' 'acquired: its fields'
is "$(fields "$dir/ev" started)" 'v at event lock store label token' 'started'
is "$(fields "$dir/ev" exited)" 'v at event lock store label token status ran_ms' 'exited'
is "$(fields "$dir/ev" released)" 'v at event lock store label token held_ms' 'released'
is "$(fields "$dir/ev" ended)" 'v at event lock store label token exit_code took_ms ran_ms' 'ended'
is "$(value "$dir/ev" acquired v)" 1 'the version of the format is 1'
like "$(value "$dir/ev" acquired at)" '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z$' 'times are of UTC'
is "$(value "$dir/ev" acquired lock)" job 'the lock'
is "$(value "$dir/ev" acquired store)" "file:$dir/store" 'the store'
is "$(value "$dir/ev" acquired label)" 'the "label"' 'the label, escaped'
like "$(value "$dir/ev" acquired token)" '^[1-9][0-9]+$' 'the token'
like "$(value "$dir/ev" ended exit_code):$(value "$dir/ev" exited status)" '^0:0$' 'and how it ended'

run "$hf" run --events "$dir/ev2" job -- sh -c 'kill -KILL $$'
is "$rc:$(value "$dir/ev2" exited signal):$(value "$dir/ev2" ended exit_code)" 137:9:137 'exited: by a signal'
run "$hf" run --events "$dir/ev3" job -- "$dir/none"
is "$rc:$(events "$dir/ev3")" '127:acquired started failed released ended ' 'failed: a command that is not there'
like "$(value "$dir/ev3" failed reason)" 'No such file' 'says why'
run "$hf" run --events - job -- echo hello
like "$out" '^hello$' '-: the output of the command'
is "$(grep -c '^{"v": 1, "at": ' <<<"$out")" 5 'and the events are on standard output'

# Waiting and skipping.
mkfifo "$dir/hold"
start "$hf" run --label holder job -- sh -c "echo up >$dir/up; read -r _ <$dir/hold"
holder=$pid
within 10 test -s "$dir/up"
run "$hf" run -w 300ms --events "$dir/wait" job -- true
is "$rc:$(events "$dir/wait")" '75:waiting skipped ended ' 'waiting, and then skipped'
is "$(fields "$dir/wait" waiting)" 'v at event lock store label status reason' 'waiting: its fields, and no token'
is "$(value "$dir/wait" waiting status)" HF_BUSY 'waiting: for what'
is "$(fields "$dir/wait" skipped)" 'v at event lock store label reason waited_ms' 'skipped: its fields'
like "$(value "$dir/wait" skipped reason)" holder 'skipped: who has it'
[ "$(value "$dir/wait" skipped waited_ms)" -ge 250 ]
ok $? 'skipped: how long it waited'
is "$(fields "$dir/wait" ended)" 'v at event lock store label exit_code took_ms' 'ended, and nothing ran'
run "$hf" run -n --skip-ok --events "$dir/skip" job -- true
is "$rc:$err:$(events "$dir/skip")" '0::skipped ended ' '--skip-ok: skipped is told all the same'
start "$hf" run --events "$dir/term" job -- true 2>/dev/null
waiter=$pid
within 10 grep -q waiting "$dir/term"
kill -TERM "$waiter"
ended "$waiter"
is "$rc:$(events "$dir/term")" '143:waiting failed ended ' 'a signal while waiting'
run "$hf" --store "file:/proc/none" run -n --events "$dir/bad" job -- true
is "$(events "$dir/bad")" 'failed ended ' 'a store that cannot be opened'
kill -TERM "$holder"
ended "$holder"

# Lost, and renewed late: the supervisor is stopped, the whole of it, for longer than the ttl.
start "$hf" run --ttl 1s --grace 100ms --events "$dir/lost" frozen -- \
    sh -c "touch $dir/frozen; exec sleep 60" 2>/dev/null
frozen=$pid
within 10 test -e "$dir/frozen"
kill -STOP "$frozen"
sleep 1.5
kill -CONT "$frozen"
ended "$frozen"
is "$rc" 123 'frozen past the deadline'
is "$(events "$dir/lost")" 'acquired started lost exited ended ' 'lost is told, once'
is "$(fields "$dir/lost" lost)" 'v at event lock store label token reason held_ms' 'lost: its fields'
like "$(value "$dir/lost" lost reason)" . 'lost: why'
start "$hf" run --ttl 3s --grace 100ms --events "$dir/late" late -- sh -c "read -r _ <$dir/hold"
late=$pid
within 10 grep -q started "$dir/late"
sleep 1.2 # renewed once
kill -STOP "$late"
sleep 2.3
kill -CONT "$late"
within 10 grep -q 'renewed_late\|lost' "$dir/late"
if grep -q renewed_late "$dir/late"; then
    is "$(fields "$dir/late" renewed_late)" 'v at event lock store label token gap_ms remaining_ms' 'renewed_late: its fields'
    [ "$(value "$dir/late" renewed_late gap_ms)" -gt 2000 ]
    ok $? 'renewed_late: after more than two thirds of the ttl'
else
    skip 2 'this machine was too slow to renew at all'
fi
kill -TERM "$late"
ended "$late"

# Hostile names, and lines of at most 4 KiB, each in one piece.
long=$(printf 'x%.0s' {1..4000})
name=$'q"\\\xff\xfe\xe2\x80\xae\xc2\x85'$(printf '\xff%.0s' {1..180})
run "$hf" --store "file:$dir/store" run --events "$dir/odd" --label "$long" "$name" -- true
is "$rc" 0 'a lock with an odd name'
perl -MJSON::PP -ne 'decode_json($_); exit 1 if length > 4096' "$dir/odd"
ok $? 'its events are JSON, of at most 4 KiB'
like "$(value "$dir/odd" acquired lock)" '^q"' 'the name is escaped'
unlike "$(cat "$dir/odd")" '[[:xdigit:]]{32}' 'no owner in it'
unlike "$(cat "$dir/ev" "$dir/lost")" '[[:xdigit:]]{32}' 'nor in the others'
pids=
for i in {1..8}; do
    (for _ in {1..10}; do "$hf" run --events "$dir/many" "many$i" -- true; done) &
    pids="$pids $!"
done
for i in $pids; do wait "$i"; done
perl -MJSON::PP -ne 'decode_json($_)' "$dir/many"
ok $? 'many processes share a file'
is "$(wc -l <"$dir/many")" 400 'and no event is lost'
if command -v strace >/dev/null; then
    ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" strace -f -qq -e trace=write -o "$dir/trace" "$hf" run --events "$dir/one" job -- true
    is "$(grep -c 'write([0-9]*, "{\\"v\\": 1' "$dir/trace")" 5 'one write for each event'
else
    is "$(grep -c '^{"v": 1' "$dir/odd")" 5 'one line for each event'
fi

# A file that cannot be written must not cost the job anything.
run "$hf" run --events "$dir/no/such/place" job -- touch "$dir/ran1"
is "$rc" 0 'a file that cannot be made does not stop the job'
[ -e "$dir/ran1" ]
ok $? 'which is run'
is "$(grep -c 'cannot be written' <<<"$err")" 1 'and is said once'
run "$hf" run --events /dev/full job -- touch "$dir/ran2"
is "$rc:$(ls "$dir/ran2")" "0:$dir/ran2" 'a full disk'
is "$(grep -c 'cannot be written.*No space' <<<"$err")" 1 'is said once'
mkfifo "$dir/fifo"
run "$hf" run --events "$dir/fifo" job -- touch "$dir/ran3"
is "$rc:$(ls "$dir/ran3")" "0:$dir/ran3" 'a pipe that nobody reads'
is "$(grep -c 'cannot be written' <<<"$err")" 1 'is said once'
"$hf" run --events - job -- touch "$dir/ran4" 2>"$dir/err" | true
is "${PIPESTATUS[0]}:$(ls "$dir/ran4")" "0:$dir/ran4" 'a reader that has left'
# A reader that is stuck: the pipe is full from the start.
exec 9<>"$dir/fifo"
perl -e 'use Fcntl; fcntl(STDOUT, F_SETFL, O_WRONLY | O_NONBLOCK); 1 while syswrite(STDOUT, "x" x 4096)' >&9
before=$SECONDS
run "$hf" run --events "$dir/fifo" job -- touch "$dir/ran5"
is "$rc:$(ls "$dir/ran5")" "0:$dir/ran5" 'a reader that is stuck'
[ $((SECONDS - before)) -lt 20 ]
ok $? 'holds nothing up'
like "$err" 'events' 'and is said'
exec 9>&-

# A file that is moved away is made anew: it may be rotated.
start "$hf" run --events "$dir/rotated" rotated -- sh -c "read -r _ <$dir/hold"
rotated=$pid
within 10 grep -q started "$dir/rotated"
mv "$dir/rotated" "$dir/rotated.1"
kill -TERM "$rotated"
ended "$rotated"
is "$(events "$dir/rotated.1")" 'acquired started ' 'what was told before it was moved'
is "$(events "$dir/rotated")" 'exited released ended ' 'and after'

run "$hf" run --events '' job -- true
is "$rc" 64 '--events without a name is refused'

# Every event is in the man page.
root=$(cd "$(dirname "$0")/../.." && pwd)
missing=
# shellcheck disable=SC2013 # words
for word in $(sed -n 's/^ *X(EVENT_[A-Z_]*, "\([a-z_]*\)").*/\1/p' "$root/src/cli/events/events.h"); do
    grep -q "^\.B $word\$" "$root/man/holdfast-run.1" || missing="$missing $word"
done
is "$missing" '' 'holdfast-run(1) has every event'
missing=
# shellcheck disable=SC2013 # words
for field in $(cat "$dir"/{ev,ev2,wait,lost,late} | grep -o '"[a-z_]*": ' | tr -d '": ' | sort -u); do
    grep -q "^\.BR* .*\b$field\b" "$root/man/holdfast-run.1" || missing="$missing $field"
done
is "$missing" '' 'and every field'

done_testing
