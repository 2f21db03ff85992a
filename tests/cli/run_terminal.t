#!/bin/bash
# On a terminal: the command stays in our process group, and the wait is shown on a live line.
# run: once, run: first
set -u
. "$(dirname "$0")/lib.sh"

# Runs a script on a terminal of its own; what it writes is in $dir/screen. What arrives on stdin
# is typed.
on_terminal() { # COMMAND
    script -qefc "$1" "$dir/screen" >/dev/null
}

has_watchdog_below() { # is the watchdog there?
    grep -q PR_SET_NAME "$dir/trace"
}

cat >"$dir/groups" <<END
#!/bin/bash
$hf run job -- sh -c 'ps -o pgid= -p \$\$ -p \$PPID; ps -o tpgid= -p \$\$'
END
chmod +x "$dir/groups"
on_terminal "$dir/groups" </dev/null
numbers=$(tr -d '\r' <"$dir/screen" | grep -Ex ' *[0-9]+' | tr -d ' ')
is "$(echo "$numbers" | wc -l)" 3 'three process groups are reported'
mine=$(echo "$numbers" | sed -n 3p)
is "$(echo "$numbers" | sed -n '1,2p' | grep -cx "$mine")" 1 \
    'the command is in the foreground group, the watchdog is not'

# Ctrl-C: the command gets it once, and the shell sees that it was a signal.
cat >"$dir/count-ints" <<END
# No system(): it ignores INT while it waits.
sub note { open my \$to, ">>", \$_[0]; print \$to "\$_[1]\n"; close \$to }
\$SIG{INT} = sub { note "$dir/ints", "int" };
note "$dir/up", "up";
sleep 1 while ! -s "$dir/ints";
sleep 1;
\$SIG{INT} = "DEFAULT";
kill "INT", \$\$;
END
cat >"$dir/ctrl-c" <<END
#!/bin/bash
$hf run job -- perl $dir/count-ints
echo "not reached \$?" >>$dir/ints
END
chmod +x "$dir/ctrl-c"
(within 10 test -s "$dir/up" && printf '\003' && within 10 test -s "$dir/ints" && sleep 2) |
    on_terminal "$dir/ctrl-c"
is "$(cat "$dir/ints")" int 'Ctrl-C reaches the command once, and stops the script around us'
is_free job
ok $? 'the lock is free after Ctrl-C'

# Ctrl-C while the command is not there yet: it is about to be, by clone3 into a cgroup of its own or, where that
# is not to be had, by vfork.
early_ctrl_c() { # WHAT INJECTION...
    local what=$1
    shift
    : >"$dir/trace"
    (within 10 has_watchdog_below && sleep 0.3 && printf '\003' && sleep 3) |
        ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" on_terminal "
            strace -f -qq -o $dir/trace -e trace=prctl,?vfork,?clone3 $* $hf run job -- sleep 20"
    is $? 130 "Ctrl-C before the command starts is not lost: $what"
}
if strace -f -o /dev/null true 2>/dev/null; then
    early_ctrl_c clone3 '-e inject=?clone3:delay_enter=1500000'
    early_ctrl_c vfork '-e inject=?clone3:error=ENOSYS -e inject=?vfork:delay_enter=1500000'
else
    skip 2 'cannot trace a process here'
fi

# A signal from elsewhere reaches a command that made itself a group of its own, as shells do.
rm -f "$dir/up"
parent_of() { ps -o ppid= -p "$1" | tr -d ' '; }
(within 10 test -s "$dir/up" && kill -TERM "$(parent_of "$(parent_of "$(cat "$dir/up")")")") &
on_terminal "$hf run job -- perl -e '
    setpgrp(0, 0); \$SIG{TERM} = sub { exit 9 }; open F, \">$dir/up\"; print F \$\$; close F;
    sleep 20'; echo rc \$?" </dev/null
like "$(cat "$dir/screen")" 'rc 9' 'a command with a group of its own gets a signal that we get'

# Ctrl-Z and fg.
cat >"$dir/ctrl-z" <<END
#!/bin/bash
set -m
$hf run job -- sh -c 'echo \$\$ >$dir/pid; while [ ! -e $dir/go ]; do sleep 0.05; done; echo through'
echo "stopped \$?"
# The kernel tells the whole group at once, but each stops only when it is its turn to run.
for i in \$(seq 500); do
    grep -q '^State:.*T' /proc/\$(cat $dir/pid)/status && echo 'child stopped' && break
    sleep 0.02
done
touch $dir/go
fg
echo "ended \$?"
END
chmod +x "$dir/ctrl-z"
(within 10 test -s "$dir/pid" && sleep 0.2 && printf '\032' && within 10 test -e "$dir/go" && sleep 0.5) |
    on_terminal "$dir/ctrl-z"
screen=$(tr -d '\r' <"$dir/screen")
like "$screen" 'stopped 148' 'Ctrl-Z stops us, the shell sees it'
like "$screen" '^child stopped' 'and the command'
like "$screen" '^through' 'fg lets it go on'
like "$screen" '^ended 0' 'to its end'

# The live line.
mkfifo "$dir/hold"
start "$hf" run --label the-holder job -- sh -c "echo up >$dir/up2; read -r _ <$dir/hold"
within 10 test -s "$dir/up2"
(within 15 grep -q the-holder "$dir/screen" && echo >"$dir/hold") &
: >"$dir/screen"
on_terminal "stty cols 200; $hf run -w 1m job -- echo mine" </dev/null
screen=$(cat "$dir/screen")
like "$screen" "waiting [0-9.]+m?s of 1m.* for \"job\", held .* by the-holder, ttl ends in .*, token [0-9]+" \
    'the live line says how long we have waited and for whom, since when and how long still'
like "$screen" $'\r\033\\[Kmine' 'the line is erased before the command writes'
wait

done_testing
