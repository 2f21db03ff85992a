# shellcheck shell=sh
# tap.sh - what the shell tests of the commands share. Source it first:  . "$(dirname "$0")/tap.sh"
#
# Each test speaks TAP and runs in a folder of its own, $tmp, with an empty store there. `holdfast` is
# the program under test. `t` runs a command and keeps its output in $out, $err and $code.
set -u
unset CDPATH
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
bin=$build/holdfast
if [ ! -x "$bin" ]; then
    echo "Bail out! $bin is not there: run make first"
    exit 1
fi

unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_HELD HOLDFAST_LOST_FD HOLDFAST_STORE_PATH
tmp=$(mktemp -d)
HOLDFAST_DIR=$tmp/default
HOLDFAST_STORE=file:$tmp/store
export HOLDFAST_DIR HOLDFAST_STORE
trap 'end_of_test' EXIT
trap 'exit 130' INT TERM
tap_count=0
tap_failed=0
out='' err='' code=0

holdfast() { "$bin" "$@"; }

# t COMMAND...: runs it; never fails itself.
t() {
    code=0
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
    out=$(cat "$tmp/out")
    err=$(cat "$tmp/err")
}

# ok TEXT COMMAND...: passes if the command succeeds.
ok() {
    tap_text=$1
    shift
    tap_count=$((tap_count + 1))
    if "$@" >"$tmp/why" 2>&1; then
        echo "ok $tap_count - $tap_text"
    else
        tap_failed=1
        echo "not ok $tap_count - $tap_text"
        {
            echo "failed: $*"
            cat "$tmp/why"
            echo "last exit code: $code"
            printf 'stdout: %s\nstderr: %s\n' "$out" "$err"
        } | sed 's/^/# /'
    fi
}

# is GOT WANTED TEXT
is() {
    ok "$3" equal "$1" "$2"
}

# has WHERE WHAT TEXT: WHAT is a part of WHERE.
has() {
    ok "$3" contains "$1" "$2"
}

not() { ! "$@"; }

equal() {
    [ "$1" = "$2" ] && return 0
    printf 'got:    %s\nwanted: %s\n' "$1" "$2"
    return 1
}

contains() {
    case $1 in *"$2"*) return 0 ;; esac
    return 1
}

# refused CODE WHAT TEXT: the last `t` ended with CODE and one sentence with WHAT in it.
refused() {
    ok "$3" is_refusal "$1" "$2"
}

is_refusal() {
    equal "$code" "$1" && contains "$err" "$2" &&
        [ "$(printf '%s\n' "$err" | grep -c '^holdfast: ')" = 1 ]
}

# json FILTER TEXT: the last output is one JSON value for which the jq filter is true.
json() {
    ok "$2" json_holds "$1"
}

json_holds() {
    [ "$(jq -s length "$tmp/out")" = 1 ] && jq -e "$1" "$tmp/out"
}

# until_true COMMAND...: polls it, for 20 seconds at most.
until_true() {
    tap_tries=0
    while ! "$@" >/dev/null 2>&1; do
        tap_tries=$((tap_tries + 1))
        [ "$tap_tries" -lt 400 ] || return 1
        sleep 0.05
    done
}

done_testing() {
    echo "1..$tap_count"
    tap_done=1
}

end_of_test() {
    tap_code=$?
    for tap_pid in ${background-}; do
        kill -9 "$tap_pid" 2>/dev/null || true
    done
    rm -rf "$tmp"
    [ -n "${tap_done-}" ] || exit 1
    [ "$tap_code" = 0 ] || exit "$tap_code"
    exit "$tap_failed"
}
