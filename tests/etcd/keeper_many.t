#!/bin/bash
# Thousands of kept locks in one client, and one request that is not answered: none is lost.
# run: long
# shellcheck disable=SC2034,SC2154,SC2317 # functions and variables that eventually uses
set -u
. "$(dirname "$0")/lib.sh"

many=3000
ttl=15000
cluster_start a b c
eventually 20 eval 'first=$(leader a b c)'
# shellcheck disable=SC2046 # two names
set -- $(printf '%s\n' a b c | grep -v "$first")
client k "$(url "$1" "$2" "$first")" # a follower first
tell k crowd $many lock $ttl
hear k 300
is "$answer" "ok $many" "$many locks"
all_held() { # DESCRIPTION
    ask k held
    is "$answer" "ok $many" "$1"
}
sleep 8 # renewed at least once
all_held 'renewed'

# The server that the client talks to is frozen, and one more lock is asked for. The lease of attempts is fresh,
# because one was just made: so what is not answered is the taking itself.
for name in "$1" "$2" "$first" "$1" "$2" "$first"; do
    ask k acquire 3 before $ttl 0 kept
    ask k release 3
    kill -STOP "$(pid "$name")"
    tell k acquire 1 "one.more.$name" $ttl 0 kept
    hear k 30
    echo "# $name is frozen; one more: $answer"
    [[ $answer == ok* ]] || break
    ask k release 1
    kill -CONT "$(pid "$name")"
done
like "$answer" 'HF_UN*' 'an acquire without an answer'
sleep 18
all_held 'costs none of them'
kill -CONT "$(pid "$name")"
sleep 18
all_held 'nor does the thaw'

# a release that nobody answers: what may be left must not live on, and the others move at once
ask k acquire 2 two.more $ttl 0 kept
like "$answer" 'ok *' 'another'
sleep 8
for name in a b c; do kill -STOP "$(pid $name)"; done
tell k release 2
hear k 30
like "$answer" 'HF_UN*' 'a release without an answer'
for name in a b c; do kill -CONT "$(pid $name)"; done
sleep 25
all_held 'costs none of them either'
ctl "$2" get --prefix $'holdfast/two.more\x1f' --keys-only | grep -ac . >"$dir/left"
is "$(cat "$dir/left")" 0 'and is free'
done_testing
