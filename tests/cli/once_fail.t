#!/bin/bash
# `holdfast once` when things go wrong: failures and retries, crashes, what is held, what is not recorded.
# run: first
set -u
. "$(dirname "$0")/lib.sh"
off_border $((12 * 3600))

count() { wc -l <"$dir/$1" 2>/dev/null || echo 0; }
state() { "$hf" once --show --json "$1" | jq -r .state; }

# Failures.
run "$hf" once --per 1d fails -- sh -c 'exit 3'
is "$rc" 3 'the code of a failed command is passed on'
run "$hf" once --per 1d fails -- touch "$dir/no"
is "$rc" 1 'after a final failure the others exit 1'
like "$err" 'failed with exit code 3, 1 attempt, the last by' 'and say so'
test ! -e "$dir/no"
ok $? 'and run nothing'
run "$hf" once -n --skip-ok --done-exit 9 --per 1d fails -- true
is "$rc" 1 'whatever is said about those who come when it is done'

# Without a period it is tried again by whoever comes later, and not by those who waited.
mkfifo "$dir/fail"
start "$hf" once pay-4711 -- sh -c "echo up >$dir/paying; read -r _ <$dir/fail; exit 3"
first=$pid
within 10 test -s "$dir/paying"
start "$hf" once pay-4711 -- touch "$dir/no" 2>/dev/null
waits() { [ "$("$hf" status --json pay-4711 | jq .waiters)" = 1 ]; }
within 10 waits
echo >"$dir/fail"
ended "$first"
is "$rc" 3 'a payment fails'
ended "$pid"
is "$rc" 1 'who waited for it hears so'
test ! -e "$dir/no"
ok $? 'and runs nothing'
run "$hf" once pay-4711 -- touch "$dir/paid"
is "$rc" 0 'who comes later tries again'
is "$(state pay-4711)" 'done' 'and that settles it'
run "$hf" once pay-4711 -- touch "$dir/no"
test "$rc" = 0 -a -e "$dir/paid" -a ! -e "$dir/no"
ok $? 'for everybody'

run "$hf" once --per 1d --retries 2 --retry-after 400ms twice -- sh -c "date +%s%N >>$dir/tries; exit 5"
is "$rc" 5 '--retries: the last code'
is "$(count tries)" 3 'two retries are three attempts'
gap=$(awk 'NR == 1 { a = $1 } NR == 2 { print int(($1 - a) / 1000000) }' "$dir/tries")
# The record says when it began, and how long CMD took: what it takes to put the former on record is in neither.
[ "$gap" -ge 300 ]
ok $? "--retry-after waits ($gap ms)"
like "$err" 'it will be tried again' 'and says that it tries again'
run "$hf" once --per 1d --retries 2 twice -- true
is "$rc" 1 'they are used up for everybody'
run "$hf" once --per 1d --retries 3 twice -- true
is "$rc" 0 'unless one allows for more'
run "$hf" once --retries 1 mends -- sh -c "echo x >>$dir/mends; [ \$(wc -l <$dir/mends) = 2 ]"
is "$rc" 0 'a retry that succeeds is a success'
is "$(state mends)" 'done' 'and on record'

run bash -c 'ulimit -n 32; exec "$0" once --retries 60 --output often -- false' "$hf"
is "$rc $("$hf" once --show --json often | jq .attempts)" '1 61' 'many retries leave nothing open'

# Somebody who waits takes over the retry, or waits for it.
start "$hf" once --retries 1 --retry-after 1s line -- sh -c "echo x >>$dir/line; touch $dir/runs; sleep 0.5; exit 1"
first=$pid
within 10 test -e "$dir/runs"
run "$hf" once --retries 1 --retry-after 1s line -- sh -c "echo y >>$dir/line"
second=$rc
ended "$first"
is "$(count line)" 2 'a failure is retried once, by whoever is first'
if [ "$(tail -n 1 "$dir/line")" = y ]; then want='0 0'; else want='1 1'; fi
is "$rc $second" "$want" 'and both know how it ended'
start "$hf" once --retries 1 --retry-after 1h later -- false 2>/dev/null # the winner waits for its retry
failed_once() { [ "$("$hf" once --show --json later 2>/dev/null | jq .failures)" = 1 ]; }
within 10 failed_once
run "$hf" once -n --events "$dir/later.events" --metrics "$dir/later.prom" --retries 1 --retry-after 1h later -- true
is "$rc" 75 '-n does not wait for a retry'
like "$err" 'the next attempt is due in' 'and says when it is'
is "$(jq -r .event "$dir/later.events" | tr '\n' ' ')$(sed -n 's/^holdfast_skipped_total{.*} //p' "$dir/later.prom")" \
    'skipped ended 1' 'as do its events and figures'
run "$hf" once -w 300ms --retries 1 --retry-after 1h later -- true
is "$rc" 75 'nor does -w longer than it says'
kill -TERM "$pid"

# The retries are those of the slot, even for one who waited for the first attempt.
mkfifo "$dir/count"
start "$hf" once --retries 1 --retry-after 500ms counted -- sh -c "echo x >>$dir/counted; read -r _ <$dir/count; exit 3" 2>/dev/null
first=$pid
within 10 test -s "$dir/counted"
start "$hf" once --events "$dir/counted.events" --retries 1 --retry-after 500ms counted -- sh -c "echo x >>$dir/counted; exit 4" 2>/dev/null
counted_waits() { [ "$("$hf" status --json counted | jq .waiters)" = 1 ]; }
within 10 counted_waits
echo >"$dir/count"
counted_failed() { [ "$("$hf" once --show --json counted | jq .failures)" = 1 ]; }
within 10 counted_failed
kill -TERM "$first"
ended "$pid"
is "$rc $(count counted)" '4 2' 'who waited does not begin to count anew'
is "$(jq -r 'select(.event == "ended").exit_code' "$dir/counted.events" | tr '\n' ' ')" '4 ' 'and its events tell of one end, its own'

# What says nothing about the job is no failure of it.
run "$hf" once missing -- "$dir/no-such-command"
is "$rc" 127 'a command that is missing here gives 127'
run "$hf" once missing -- true
is "$rc" 0 'another machine may have it'
start "$hf" once told -- sh -c "touch $dir/told; exec sleep 60"
within 10 test -e "$dir/told"
kill -TERM "$pid"
ended "$pid"
is "$rc" 143 'a job that is told to end ends'
run "$hf" once told -- true
is "$rc" 0 'and another one takes over: no retry is used up'

run "$hf" once --per 1d watchdog -- sh -c 'kill -KILL $PPID; exec sleep 60'
is "$rc" 125 'a job whose watchdog is killed is ended'
run "$hf" once --per 1d watchdog -- true
is "$rc" 0 'and that is no failure of the job either'

run "$hf" once --per 1d --max-runtime 200ms --grace 100ms long -- sleep 60
is "$rc" 124 '--max-runtime is a failure'
run "$hf" once --per 1d long -- true
is "$rc" 1 'of the job'

# A crash, with hold.
start "$hf" once --on-crash hold --per 1d charge -- sh -c "touch $dir/charged; exec sleep 60"
within 10 test -e "$dir/charged"
kill -KILL "$pid"
ended "$pid"
run "$hf" once --on-crash hold --per 1d charge -- touch "$dir/twice"
is "$rc" 70 'a run that began and never ended is held: 70'
like "$err" 'held: [^ ]*/sh started it at .* and never finished it; .*holdfast once --clear --reason TEXT charge' \
    'and what to do about it is said'
run "$hf" once --per 1d charge -- touch "$dir/twice"
is "$rc" 70 'for everybody, and for good'
run "$hf" once -n --skip-ok --per 1d charge -- touch "$dir/twice"
is "$rc" 70 'also with -n'
test ! -e "$dir/twice"
ok $? 'nothing was run'
run "$hf" once --clear charge
is "$rc" 64 '--clear wants a reason'
run "$hf" once --clear charge --reason 'the bank has no such charge'
is "$rc" 0 'a person clears it'
like "$out" '^cleared "charge", slot 20' 'and sees what was cleared'
like "$("$hf" once --show charge)" 'cleared by .*: the bank has no such charge' 'the reason is on record'
run "$hf" once --on-crash hold --per 1d charge -- touch "$dir/twice"
is "$rc" 0 'then it runs'
run "$hf" once --clear charge --reason again
is "$rc" 1 'there is nothing more to clear'
start "$hf" once --on-crash hold term -- sh -c "touch $dir/term; exec sleep 60"
within 10 test -e "$dir/term"
kill -TERM "$pid"
ended "$pid"
run "$hf" once --on-crash hold term -- true
is "$rc" 70 'told to end in the middle is held as well'

run "$hf" once --on-crash hold killed -- sh -c 'kill -KILL $PPID; exec sleep 60'
run "$hf" once --on-crash hold killed -- true
is "$rc" 70 'and so is a job that was ended because its watchdog was killed'

# However short the memory: neither a run that crashed nor one that is held is forgotten.
start "$hf" once --on-crash hold --keep 300ms short -- sh -c "touch $dir/short; exec sleep 60"
within 10 test -e "$dir/short"
kill -KILL "$pid"
ended "$pid"
sleep 0.5
run "$hf" once --on-crash hold --keep 300ms short -- true
first=$rc
sleep 0.5
run "$hf" once --on-crash hold --keep 300ms short -- true
is "$first $rc" '70 70' 'what runs, and what is held, is kept for ever, whatever --keep says'
run "$hf" once --keep 300ms short2 -- true
sleep 0.5
run "$hf" once --keep 300ms short2 -- touch "$dir/short2"
test -e "$dir/short2"
ok $? 'an outcome is not'

run "$hf" once --clear --slot ever --reason 'bad data' mends
is "$rc" 0 'a slot that is done can be cleared by its name'
run "$hf" once mends -- true
is "$("$hf" once --show --json mends | jq .attempts)" 3 'and is run again'

start "$hf" run busy -- sleep 60
within 10 eval '! is_free busy'
run "$hf" once --clear busy --reason x
is "$rc" 75 'what is being run cannot be cleared'

# Settings are those of everybody.
run "$hf" once --per 1d set -- true
run "$hf" once --per 7d set -- true
is "$rc" 64 'another --per for a known key is refused'
like "$err" 'is on record with --per 1d --at 00:00 --tz UTC, and was started with --per 7d' 'both are named'
run "$hf" once --per 1d --at 03:00 set -- true
is "$rc" 64 'another --at too'
run "$hf" once --per 1d --tz Europe/Berlin set -- true
is "$rc" 64 'and another --tz'
run "$hf" once set -- true
is "$rc" 64 'and none at all'
run "$hf" once pay -- true
run "$hf" once --per 1d pay -- true
is "$rc" 64 'the other way round as well'
run "$hf" once --clear --per 1d --reason 'a payment every day' pay
run "$hf" once --per 1d pay -- true
like "$("$hf" once --show pay)" '^"pay", slot 20' '--show: what was done before there were periods is not the last slot'
run "$hf" once --clear --per 12h set --reason 'twice a day from now on'
is "$rc" 0 '--clear with other settings changes them'
run "$hf" once --per 12h set -- true
is "$rc" 0 'for good'

run "$hf" once --per 1d moved -- true
run "$hf" once --clear --per 1d --at 00:01 moved --reason 'a minute later from now on'
run "$hf" once --per 1d --at 00:01 moved -- touch "$dir/no"
is "$rc" 0 'a slot of the same name, done before the change, is done'
like "$err" '"moved", slot 20.*: done by' 'and says so'
run "$hf" once --clear --slot "$("$hf" once --show --json moved | jq -r .slot)" --reason 'once more' moved
run "$hf" once --per 1d --at 00:01 moved -- touch "$dir/moved"
test "$rc" = 0 -a -e "$dir/moved"
ok $? 'and can be cleared and run with the new ones'
run "$hf" once --per 1d moved -- true
is "$rc" 64 'not with the old ones'

# A success is put on record however long that takes: the lease is renewed meanwhile. Who reads our output is
# slow here, and --output waits for it for a second.
mkfifo "$dir/full"
exec 3<>"$dir/full"
perl -e 'use Fcntl; fcntl STDOUT, F_SETFL, O_NONBLOCK; 1 while syswrite STDOUT, "x" x 4096; fcntl STDOUT, F_SETFL, 0' >&3
"$hf" once --ttl 1s --grace 100ms --output slow -- echo hello >&3 2>"$dir/slow"
rc=$?
exec 3>&-
is "$rc $(state slow)" '0 done' 'the lease outlives the recording of a short job'
is "$(cat "$dir/slow")" '' 'and nothing is said'

# Succeeded, but not on record: the lock is lost before the outcome can be written.
start "$hf" once --ttl 1s --grace 100ms --on-loss warn gone -- sh -c "touch $dir/gone; while [ ! -e $dir/over ]; do sleep 0.05; done"
within 10 test -e "$dir/gone"
kill -STOP "$pid"
sleep 1.5
run "$hf" run -w 10s gone -- true
touch "$dir/over"
kill -CONT "$pid"
ended "$pid"
is "$rc" 74 'a success that is not on record has a code of its own'
run "$hf" once gone -- true
is "$rc" 0 'and is run again'

# A frozen winner that thaws after another one succeeded does not overwrite the record.
rm -f "$dir/over"
start "$hf" once --ttl 1s --grace 100ms frozen -- sh -c "touch $dir/frozen; exec sleep 60"
within 10 test -e "$dir/frozen"
kill -STOP "$pid"
run "$hf" once --label second frozen -- true
is "$rc" 0 'another one takes over from a frozen winner'
kill -CONT "$pid"
ended "$pid"
is "$rc" 0 'the winner finds it done when it thaws'
is "$("$hf" once --show --json frozen | jq -r '.state + " " + .by')" 'done second' 'the record is the second one'\''s'

done_testing
