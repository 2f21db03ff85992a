#!/bin/bash
# The units for systemd: it accepts them, and their command lines do what the comments say. What systemd itself
# does with them is in chroot.t, which takes minutes.
# run: once
set -u
. "$(dirname "$0")/../cli/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
unset HOLDFAST_STORE

mkdir -p "$dir/units" "$dir/etc/holdfast/jobs" "$dir/etc/holdfast/leaders" "$dir/etc/holdfast/credentials"
for unit in "$root"/systemd/*.in; do
    sed "s|@BINDIR@/holdfast|$hf|" "$unit" >"$dir/units/$(basename "$unit" .in)"
done
if command -v systemd-analyze >/dev/null; then
    for unit in "$dir"/units/*; do
        instance=${unit/@./@report.}
        [ "$instance" = "$unit" ] || cp "$unit" "$instance"
        run env SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$instance"
        is "$rc" 0 "systemd-analyze verify ${unit##*/}"
        # What is wrong with other units of this machine is not ours.
        is "$(grep -F "holdfast" "$dir/err" || true)" '' "${unit##*/}: nothing is said about it"
        [ "$instance" = "$unit" ] || rm "$instance"
    done
else
    skip 6 'systemd-analyze is not installed'
fi
diag 'not tried here: conditions, User=, restarts, timers, what the watchdog of systemd does: chroot.t'

unit() { # UNIT INSTANCE [DROP-IN] : runs it, prints what it tells
    python3 "$root/tests/packages/unit.py" "$dir/units/holdfast-$1@.service" "$2" "$dir" "${@:3}"
}
background() { # OUTPUT UNIT INSTANCE : the same, its process in $pid
    start python3 "$root/tests/packages/unit.py" "$dir/units/holdfast-$2@.service" "$3" "$dir" >"$1" 2>&1
}
job() { # NAME LINE... : the file of a job
    printf '%s\n' "${@:2}" "HOLDFAST_DIR=$dir/var/lib/holdfast" >"$dir/etc/holdfast/jobs/$1"
}

# A job.
job report "COMMAND=echo \"\$HOLDFAST_NAME \$HOLDFAST_TOKEN\" 'two  words' >>$dir/ran"
run unit job report
is "$rc" 0 'a job runs'
like "$(cat "$dir/ran")" '^report [0-9]+ two  words$' 'under the lock of its name, in a shell'
run unit job report
is "$rc:$(wc -l <"$dir/ran")" 0:1 'once a day, unless its file says otherwise'
job report "COMMAND=echo again >>$dir/ran" 'HOW=run --no-wait' LOCK=other
run unit job report
is "$rc:$(tail -n 1 "$dir/ran")" 0:again 'HOW and LOCK are the words of the file'
start env HOLDFAST_DIR="$dir/var/lib/holdfast" "$hf" run other -- sleep 60
other=$pid
within 20 env HOLDFAST_DIR="$dir/var/lib/holdfast" "$hf" status --held other >/dev/null
run unit job report
is "$rc" 0 'a lock that another one has is no failure of the unit'
like "$out" '^exit 75$' 'it is exit code 75'
kill "$other"
ended "$other"
job bad 'COMMAND=exit 3' 'HOW=run --no-wait'
run unit job bad
is "$rc" 1 'a job that fails is one'
for nothing in '# COMMAND=true' COMMAND=; do
    job bad "$nothing" 'HOW=run --no-wait'
    run unit job bad
    is "$rc" 1 "and so is one that has nothing to run: $nothing"
    like "$err" 'COMMAND.* is missing in /etc/holdfast/jobs/bad' 'whose file is named'
done
# As docs/systemd.md says how words are kept together.
job words "COMMAND='\"printf\" \"<%s>\" \"a  b\" c >$dir/words'" 'HOW=run --no-wait --label "this  one"'
run unit job words
is "$rc:$(cat "$dir/words")" '0:<a  b><c>' 'a command that begins with a quote, and options with blanks'

# TERM goes to holdfast alone, which waits for what the job started.
job slow "COMMAND=trap 'sleep 0.3; echo ended >>$dir/ran; exit 0' TERM; echo begun >>$dir/ran; while :; do sleep 0.1; done" \
    'HOW=run --no-wait'
background "$dir/told" job slow
slow=$pid
within 20 grep -q begun "$dir/ran"
kill -TERM "$slow"
ended "$slow"
is "$rc" 0 'told to end is no failure'
is "$(tail -n 1 "$dir/ran")" ended 'and the job has ended by then'

# StateDirectory, and a password.
printf '[Service]\nStateDirectory=report\n' >"$dir/user.conf"
printf 'COMMAND=true\nHOW=run --no-wait\n' >"$dir/etc/holdfast/jobs/state"
run unit job state "$dir/user.conf"
is "$rc" 0 'a job with a StateDirectory runs'
[ -d "$dir/var/lib/report/holdfast" ]
ok $? 'and its store is there'
printf 'COMMAND=true\nHOW=run --no-wait\nHOLDFAST_STORE=redis://127.0.0.1:1?password_file=password\n' >"$dir/etc/holdfast/jobs/secret"
run unit job secret
is "$rc" 1 'no password where one is said to be'
like "$err" 'password is empty' 'is said'
echo hunter2 >"$dir/etc/holdfast/credentials/secret"
run unit job secret
like "$out" '^exit 69$' 'with its credential it gets as far as the server'
unlike "$out$err" hunter2 'and nobody is told the password'

# A leader without a command does not stand.
printf 'HOW=--ttl 3s\nHOLDFAST_DIR=%s/var/lib/holdfast\n' "$dir" >"$dir/etc/holdfast/leaders/idle"
run unit leader idle
is "$rc:$out" 1: 'a leader that has nothing to run does not stand for election'
like "$err" 'COMMAND.* is missing in /etc/holdfast/leaders/idle' 'and its file is named'

# A leader, and its standby.
cat >"$dir/etc/holdfast/leaders/web" <<END
COMMAND=echo "\$HOLDFAST_TERM \${NOTIFY_SOCKET-none} \${WATCHDOG_USEC-none}" >>$dir/led; exec sleep 100
HOW=--ttl 3s --grace 100ms
HOLDFAST_DIR=$dir/var/lib/holdfast
END
background "$dir/one" leader web
one=$pid
within 20 grep -q 'STATUS=leader' "$dir/one"
ok $? 'a leader says so'
like "$(head -n 1 "$dir/one")" '^READY=1$' 'it was ready first'
term=$(sed -n 's/^STATUS=leader of "web", term \([0-9]*\)$/\1/p' "$dir/one")
within 20 test -s "$dir/led"
is "$(cat "$dir/led")" "$term none none" 'its term is that of the command, who is not told of the manager'
background "$dir/two" leader web
two=$pid
within 20 grep -q 'STATUS=standby for "web"' "$dir/two"
ok $? 'another one is ready, and stands by'
answers() { [ "$(grep -c WATCHDOG=1 "$1")" -ge "$2" ]; }
within 20 answers "$dir/one" 3
ok $? 'the watchdog is answered by a leader'
within 20 answers "$dir/two" 3
ok $? 'and by a standby'
kill -TERM "$one"
ended "$one"
is "$rc" 0 'a leader that is told to end has not failed'
like "$(cat "$dir/one")" 'STOPPING=1' 'and says that it ends'
within 20 grep -q 'STATUS=leader' "$dir/two"
ok $? 'the standby leads'
read -r main _ <"/proc/$two/task/$two/children"
kill -STOP "$main"
sleep 0.1 # what it said before is written down
before=$(grep -c WATCHDOG=1 "$dir/two")
sleep 0.3
is "$(grep -c WATCHDOG=1 "$dir/two")" "$before" 'one that is stopped does not answer'
kill -CONT "$main"
kill -TERM "$two"
ended "$two"
like "$(cat "$dir/two")" 'READY=1' 'it had been ready'
done_testing
