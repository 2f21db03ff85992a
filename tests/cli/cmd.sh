# cmd.sh - what the tests of the smaller commands share, on top of lib.sh. Sourced by bash, after
# `set -u`. `holdfast` is the program under test; `run` keeps its last words in $out, $err and $rc.
# shellcheck shell=bash

. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # for the tests
root=$(cd "$(dirname "$0")/../.." && pwd)
export HOLDFAST_DIR=$dir/default

holdfast() { "$hf" "$@"; }

# check DESCRIPTION COMMAND... : good if the command succeeds
check() {
    local what=$1 why status
    shift
    why=$("$@" 2>&1)
    status=$?
    ok "$status" "$what"
    [ "$status" -eq 0 ] || diag "failed: $*" "$why" "exit code: ${rc-}" "stdout: ${out-}" "stderr: ${err-}"
}

not() { ! "$@"; }

contains() { # TEXT PART
    [[ $1 == *"$2"* ]]
}

has() { # TEXT PART DESCRIPTION
    check "$3" contains "$1" "$2"
}

# refused CODE PART DESCRIPTION : the last `run` ended with CODE and one sentence with PART in it
refused() {
    check "$3" is_refusal "$1" "$2"
}

is_refusal() {
    [ "$rc" = "$1" ] && contains "$err" "$2" && [ "$(grep -c '^holdfast: ' "$dir/err")" = 1 ]
}

# json FILTER DESCRIPTION : the last output is one JSON value for which the jq filter is true
json() {
    check "$2" json_holds "$1"
}

json_holds() {
    [ "$(jq -s length "$dir/out")" = 1 ] && jq -e "$1" "$dir/out"
}
