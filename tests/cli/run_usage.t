#!/bin/bash
# Mistakes on the command line: exit 64, one clear sentence, nothing is run.
set -u
. "$(dirname "$0")/lib.sh"

usage() { # PATTERN DESCRIPTION ARGUMENT... : of `holdfast run`
    local pattern=$1 what=$2
    shift 2
    run "$hf" run "$@"
    is "$rc" 64 "$what: exit 64"
    like "$err" "$pattern" "$what: says so"
    like "$err" '^usage: holdfast run ' "$what: shows the usage"
}

usage 'name of the lock is missing' 'nothing given'
usage 'name of the lock is missing' 'no name' -- touch "$dir/ran"
usage "put \"--\" and the command after it" 'only a name' job
usage "\"--\" is missing before \"touch\"" 'no dashes' job touch "$dir/ran"
usage "options go before the name" 'an option after the name' job -n -- touch "$dir/ran"
usage 'command is missing' 'no command' job --
usage 'command is missing' 'an empty command' job -- ''
usage 'is empty' 'an empty name' '' -- touch "$dir/ran"
usage '201 bytes' 'a name that is too long' "$(printf '%0201d' 0)" -- touch "$dir/ran"
usage 'control character' 'a control character in the name' "$(printf 'a\001b')" -- touch "$dir/ran"
usage 'cannot be used together' '-n and -w' -n -w 1s job -- touch "$dir/ran"
usage 'exit code' 'an exit code that is none' -E 256 job -- touch "$dir/ran"
usage 'too short' 'a ttl of 0' --ttl 0 job -- touch "$dir/ran"
usage 'too short' 'a ttl below 100ms' --ttl 99ms job -- touch "$dir/ran"
usage 'too long' 'a ttl of more than a day' --ttl 25h job -- touch "$dir/ran"
usage 'a ttl of 3s is too short.*grace is 2s' 'a grace that leaves no time to renew' \
    --ttl 3s --grace 2s job -- touch "$dir/ran"
usage 'more than 0' 'no runtime at all' --max-runtime 0 job -- touch "$dir/ran"
usage 'on-loss' 'an unknown choice' --on-loss shrug job -- touch "$dir/ran"
usage 'max-runtime' 'a slip' --max-runtim3 1s job -- touch "$dir/ran"
[ ! -e "$dir/ran" ]
ok $? 'none of them ran the command'

run "$hf" run --ttl 100ms job -- true
is "$rc" 0 'the shortest ttl works with the default grace'
run "$hf" run --ttl 3s --grace 2s --on-loss kill job -- true
is "$rc" 0 'with --on-loss kill the grace does not matter'
run "$hf" run -- job -- true
is "$rc" 0 'dashes before the name are allowed'
run "$hf" run "$(printf '%0200d' 0)" -- true
is "$rc" 0 'a name of 200 bytes is allowed'
run "$hf" run --help
is "$rc" 0 '--help exits 0'
for option in no-wait wait busy-exit skip-ok ttl grace on-loss leftover max-runtime no-reenter; do
    like "$out" "--$option" "--help knows --$option"
done

done_testing
