# lib.sh - what the CLI tests share. Sourced by bash, after `set -u`.
#
# A test makes its claims with ok, is and like, and ends with done_testing. Each file has a store of
# its own in $dir, which goes away at the end together with the processes started by `start`.
# shellcheck shell=bash

hf=${HOLDFAST:-build/holdfast}
case $hf in /*) ;; *) hf=$PWD/$hf ;; esac
[ -x "$hf" ] || {
    echo "Bail out! there is no program $hf"
    exit 1
}

# On whoever's terminal a test is started, it behaves as without one.
if { : </dev/tty; } 2>/dev/null && [ -z "${HOLDFAST_TEST_SESSION-}" ]; then
    HOLDFAST_TEST_SESSION=1 exec setsid -w bash "$0" "$@"
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-test.XXXXXX") || exit 1
export HOLDFAST_STORE=file:$dir/store
unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_LOST_FD HOLDFAST_HELD HOLDFAST_DIR HOLDFAST_TOKENS HOLDFAST_OWNERS HOLDFAST_SLOT

tests=0
started=

# A test that hangs fails instead: after ten minutes, or LIMIT_S. If it is gone by then, no other process is taken for it.
perl -e 'for (1 .. $ARGV[1] / 2) { sleep 2; exit if getppid != $ARGV[0] } kill "TERM", $ARGV[0]' $$ "${LIMIT_S:-600}" >/dev/null 2>&1 </dev/null &
limit=$!
disown "$limit"

cleanup() {
    local pid
    for pid in $limit $started; do
        kill -KILL "$pid" 2>/dev/null
        kill -CONT "$pid" 2>/dev/null
    done
    { wait; } 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

ok() { # STATUS DESCRIPTION : 0 is good
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests - $2"
    else
        echo "not ok $tests - $2"
    fi
}

is() { # GOT EXPECTED DESCRIPTION
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || diag "got: $1" "expected: $2"
}

like() { # TEXT PATTERN DESCRIPTION : an extended regular expression
    printf '%s\n' "$1" | grep -Eq -- "$2"
    ok $? "$3"
    printf '%s\n' "$1" | grep -Eq -- "$2" || diag "got: $1" "expected to match: $2"
}

unlike() { # TEXT PATTERN DESCRIPTION
    ! printf '%s\n' "$1" | grep -Eq -- "$2"
    ok $? "$3"
}

skip() { # COUNT REASON
    local i
    for ((i = 0; i < $1; i++)); do
        tests=$((tests + 1))
        echo "ok $tests # SKIP $2"
    done
}

diag() {
    printf '%s\n' "$@" | sed 's/^/# /'
}

done_testing() {
    echo "1..$tests"
}

run() { # COMMAND... : leaves $rc and $err, prints nothing
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    rc=$?
    # shellcheck disable=SC2034 # for the tests
    out=$(cat "$dir/out") err=$(cat "$dir/err")
}

start() { # COMMAND... : in the background, its process in $pid; ended with the test
    "$@" &
    pid=$!
    started="$started $pid"
}

ended() { # PID : waits for a process of `start`, quietly; its exit code in $rc
    { wait "$1"; } 2>/dev/null
    # shellcheck disable=SC2034 # for the tests
    rc=$?
}

# within SECONDS COMMAND... : polls until COMMAND succeeds. Less than 5 seconds are a claim; 5 and more are patience, of
# which a busy machine needs more.
within() {
    local until=$((SECONDS + ($1 < 5 ? $1 : 3 * $1) + 1))
    shift
    until "$@" 2>/dev/null; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.02
    done
}

alive() { # PID : a zombie is not alive
    local stat
    read -r stat <"/proc/$1/stat" || return 1
    case ${stat##*) } in [ZX]*) return 1 ;; esac
} 2>/dev/null

dead() { # PID...
    local one
    for one; do
        ! alive "$one" || return 1
    done
}

watchdog_of() { # PID of a supervisor : the watchdog's
    local children
    read -r children <"/proc/$1/task/$1/children" || [ -n "$children" ] || return 1
    echo "${children%% *}"
}

has_watchdog() {
    [ -n "$(watchdog_of "$1")" ]
}

lines() { # FILE COUNT : has it that many lines?
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

is_free() { # NAME
    "$hf" run -n "$1" -- true 2>/dev/null
}

# off_border PERIOD_S : `once` means the next slot from 15m before its border on, and warns a minute before and after
# that. A test that ran then would see two slots, and the warning: it waits until that is over.
off_border() {
    local past=$((($(date +%s) + 900) % $1)) around=150
    [ "$past" -lt $(($1 - around)) ] || past=$((past - $1))
    [ "$past" -ge $around ] || sleep $((around - past))
}
