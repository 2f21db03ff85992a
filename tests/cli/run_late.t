#!/bin/bash
# The lease ends before the command could be started: the machine slept, or somebody stopped us.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

if ! strace -f -o /dev/null true 2>/dev/null; then
    skip 1 'cannot trace a process here'
    done_testing
    exit 0
fi
# A leak cannot be looked for while somebody traces.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

# Holds a system call up for three seconds.
late() { # CALL OPTION...
    local call=$1
    shift
    rm -f "$dir/ran"
    run strace -f -qq -o /dev/null -e trace="$call" -e inject="$call:delay_enter=3000000" \
        "$hf" run --ttl 1s "$@" job -- touch "$dir/ran"
}

check() { # DESCRIPTION
    [ ! -e "$dir/ran" ]
    ok $? "$1: the command is not started"
    is "$rc" 123 "$1: 123"
    like "$err" "^holdfast: lock \"job\" expired before touch could be started" "$1: says so"
    is "$(printf '%s\n' "$err" | wc -l)" 1 "$1: in one sentence"
    is_free job
    ok $? "$1: the lock is free"
}

# clone: the watchdog is about to be started.
late clone
check 'before the watchdog'
late clone --on-loss warn
check 'before the watchdog, --on-loss warn'
late clone --on-loss kill --max-runtime 1s
check 'before the watchdog, --max-runtime'

# The grant comes late, but not too late: there is time to renew the lease, if it is done at once.
# ioctl: asks for the terminal, before the lease is looked at.
run strace -f -qq -o /dev/null -e trace=ioctl -e inject=ioctl:delay_enter=5000000:when=1 \
    "$hf" run --ttl 8s --grace 1s job -- sh -c 'sleep 4; echo through'
is "$rc/$out/$err" 0/through/ 'most of the lease is over at the start: it is renewed in time'

# The keeper's thread cannot be started, but a moment later it can.
run strace -f -qq -o /dev/null -e trace=clone3 -e inject=clone3:error=EAGAIN:when=1 \
    "$hf" run --ttl 6s --grace 500ms job -- sh -c 'sleep 6.5; echo through'
is "$rc/$out" 0/through 'a keeper that cannot be started is tried again'
like "$err" "^holdfast: lock \"job\" cannot be renewed yet: " 'and that is said'
is "$(printf '%s\n' "$err" | wc -l)" 1 'once'

# In time is in time.
rm -f "$dir/ran"
run "$hf" run --ttl 1s job -- touch "$dir/ran"
[ -e "$dir/ran" ]
ok $? 'the command is started without all that'

done_testing
