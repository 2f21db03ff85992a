#!/bin/bash
# A job that is stopped, and the terminal's job control: the lock is not held by somebody who sleeps for
# ever, and whoever must be stopped or woken is.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

# A stopped command cannot heed a signal that is to end it, unless it is woken.
state_of() { # PID
    local stat
    read -r stat <"/proc/$1/stat" || return 1
    stat=${stat##*) }
    echo "${stat%% *}"
}
is_stopped() { [ "$(state_of "$1")" = T ]; }

for signal in TERM HUP INT QUIT; do
    rm -f "$dir/up"
    start setsid env --default-signal=INT,QUIT "$hf" run job -- \
        sh -c "ulimit -c 0; echo \$\$ >$dir/up; exec sleep 60" 2>/dev/null
    within 10 test -s "$dir/up"
    kill -STOP "$(cat "$dir/up")"
    within 10 is_stopped "$(cat "$dir/up")"
    kill -"$signal" "$pid"
    within 10 dead "$pid"
    ok $? "$signal ends a stopped command"
    kill -KILL "$pid" "$(cat "$dir/up")" 2>/dev/null
    ended "$pid"
done
within 10 is_free job
ok $? 'and the lock is free'

# What only tells something does not wake anybody.
rm -f "$dir/up"
start setsid "$hf" run job -- sh -c "trap 'echo got >$dir/got' USR1; echo \$\$ >$dir/up
    while [ ! -e $dir/got ]; do sleep 0.05; done; exit 0" 2>/dev/null
within 10 test -s "$dir/up"
kill -STOP "$(cat "$dir/up")"
within 10 is_stopped "$(cat "$dir/up")"
kill -USR1 "$pid"
sleep 0.3
is_stopped "$(cat "$dir/up")"
ok $? 'USR1 leaves a stopped command stopped'
kill -CONT "$(cat "$dir/up")"
ended "$pid"
is "$rc" 0 'and reaches it later'

# Runs a script as the session of a terminal of its own; what arrives on stdin is typed.
on_terminal() { # FILE
    chmod +x "$1"
    timeout -s KILL 40 script -qefc "$1" "$dir/screen" >/dev/null
    tr -d '\r' <"$dir/screen" >"$dir/text"
}
# shellcheck disable=SC2059 # the text is a format
typed() { # WHEN_FILE TEXT... : types when the file is there
    within 10 test -e "$1" && sleep 0.3 && shift && printf "$@"
}

# The terminal is asked by name, whatever became of stdin and stderr.
cat >"$dir/read" <<END
#!/bin/bash
$hf run --ttl 4s --grace 1s job -- sh -c 'touch $dir/asks; read -r word </dev/tty; echo "read \$word"' \
    </dev/null 2>/dev/null
echo "rc \$?"
END
(typed "$dir/asks" 'hello\n' && sleep 2) | on_terminal "$dir/read"
like "$(cat "$dir/text")" '^read hello' 'a command reads the terminal though stdin and stderr are redirected'
like "$(cat "$dir/text")" '^rc 0' 'and ends'

# In the background, then in the foreground.
rm -f "$dir/asks"
cat >"$dir/fg" <<END
#!/bin/bash
set -m
$hf run --ttl 20s job -- sh -c 'touch $dir/asks; read -r word </dev/tty; echo "read \$word"' 2>$dir/err &
while [ ! -e $dir/asks ]; do sleep 0.02; done
sleep 0.5
jobs
fg
echo "rc \$?"
END
(typed "$dir/asks" '' && sleep 1 && printf 'hello\n' && sleep 2) | on_terminal "$dir/fg"
like "$(cat "$dir/text")" 'Stopped' 'a command that reads in the background is stopped, and the shell is told'
like "$(cat "$dir/text")" '^read hello' 'fg lets it read'
like "$(cat "$dir/text")" '^rc 0' 'and end'

# The same for whoever changes the terminal: the kernel sends TTOU, which we ourselves ignore.
rm -f "$dir/asks"
cat >"$dir/ttou" <<END
#!/bin/bash
set -m
$hf run --ttl 20s job -- sh -c 'touch $dir/asks; stty -echo </dev/tty; echo changed' 2>$dir/err </dev/null &
while [ ! -e $dir/asks ]; do sleep 0.02; done
sleep 0.7
jobs
fg
echo "rc \$?"
END
(typed "$dir/asks" '' && sleep 3) | on_terminal "$dir/ttou"
like "$(cat "$dir/text")" 'Stopped' 'a command that sets the terminal in the background is stopped, and the shell is told'
like "$(cat "$dir/text")" '^changed' 'fg lets it go on'
like "$(cat "$dir/text")" '^rc 0' 'and end'

# Ctrl-Z with everything redirected.
rm -f "$dir/pid" "$dir/go"
cat >"$dir/ctrl-z" <<END
#!/bin/bash
set -m
$hf run job -- sh -c 'echo \$\$ >$dir/pid; while [ ! -e $dir/go ]; do sleep 0.05; done; exit 5' \
    </dev/null >/dev/null 2>&1
echo "stopped \$?"
grep -q '^State:.*T' /proc/\$(cat $dir/pid)/status && echo 'child stopped'
touch $dir/go
fg
echo "ended \$?"
END
(typed "$dir/pid" '\032' && within 10 test -e "$dir/go" && sleep 1) | on_terminal "$dir/ctrl-z"
like "$(cat "$dir/text")" 'stopped 148' 'Ctrl-Z stops us though everything is redirected'
like "$(cat "$dir/text")" '^child stopped' 'and the command'
like "$(cat "$dir/text")" '^ended 5' 'and fg wakes both'

# The terminal is closed while somebody is stopped: the command where we put it, the command in a group
# of its own, a child of it.
for own in '' 'setpgrp(0, 0);' 'if (fork) { wait; exit }'; do
    rm -f "$dir/pid"
    cat >"$dir/close" <<END
import os, pty, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execv("$hf", ["holdfast", "run", "--ttl", "60s", "job", "--", "perl", "-e",
             '$own open F, ">$dir/pid.new"; print F \$\$; close F; rename "$dir/pid.new", "$dir/pid"; sleep 60'])
print(pid, flush=True)
for _ in range(500):
    if os.path.exists("$dir/pid"):
        break
    time.sleep(0.02)
child = int(open("$dir/pid").read())
os.kill(child, 19)
time.sleep(0.3)
os.close(master)
END
    python3 "$dir/close" >"$dir/holder"
    within 10 dead "$(cat "$dir/holder")" "$(cat "$dir/pid")"
    ok $? "closing the terminal ends who is stopped (${own:-as started})"
    within 10 is_free job
    ok $? 'and frees its lock'
    kill -KILL "$(cat "$dir/holder")" "$(cat "$dir/pid")" 2>/dev/null
done

# A suspended job whose shell is killed: the kernel wakes what nobody can wake any more.
rm -f "$dir/pid"
cat >"$dir/orphan" <<END
#!/bin/bash
set -m
echo \$\$ >$dir/shell
$hf run --ttl 60s job -- sh -c 'echo \$\$ >$dir/pid; while :; do sleep 0.05; done'
touch $dir/suspended
sleep 60
END
rm -f "$dir/suspended"
(typed "$dir/pid" '\032' && within 10 test -e "$dir/suspended" && kill -KILL "$(cat "$dir/shell")"
    sleep 1) | on_terminal "$dir/orphan"
within 15 dead "$(cat "$dir/pid")"
ok $? 'a suspended job ends when its shell is killed'
within 10 is_free job
ok $? 'and its lock is free'
kill -KILL "$(cat "$dir/pid")" 2>/dev/null

done_testing
