#!/bin/bash
# `holdfast trap`: the trap springs without a fence and does not with one; on a real store.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

run "$hf" trap --ttl 300ms --svg "$dir/trap.svg"
is "$rc" 0 'the fence held'
like "$out" 'Without a fence' 'first without'
like "$out" 'writes 110 over it' 'worker 1 overwrites'
like "$out" 'has 110 instead of 130' 'and the loss is shown'
like "$out" 'writes 110: REFUSED, token [0-9]+ is stale' 'then it is refused'
like "$out" 'has 120: nothing is lost' 'and nothing is lost'
unlike "$out" $'\033' 'no colours where there is no terminal'
lines "$dir/out" 20
ok $? 'the whole story is told'
# Worker 2 gets the lock after the first one's lease is over, and the tokens rise.
token() { grep -m1 "$1  takes the lock" "$dir/out" | grep -o '[0-9]*$'; }
[ "$(token 'worker 1')" -lt "$(token 'worker 2')" ]
ok $? 'the second token is above the first'
python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$dir/trap.svg"
ok $? 'the picture is well-formed'
grep -q 'refused: stale' "$dir/trap.svg" && grep -q 'overwrites 120' "$dir/trap.svg"
ok $? 'and shows both'
out=$(script -qec "'$hf' trap --ttl 200ms" /dev/null </dev/null)
like "$out" $'\033\\[1;31m' 'colours on a terminal'
run "$hf" trap --store "file:$dir/other & <store>" --ttl 1200ms --svg "$dir/trap.svg"
is "$rc" 0 'the store can be named behind the command'
unlike "$out" '[0-9]{4}ms left' 'what is left of a lease is a duration as everywhere'
python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$dir/trap.svg"
ok $? 'and any name is well-formed'
is "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'holdfast-trap-*' -newer "$dir/store" 2>/dev/null | wc -l)" 0 'nothing is left behind'
run "$hf" list --json
is "$out" '[]' 'no lock either'
run "$hf" trap --store redis://127.0.0.1:1 --ttl 200ms
[ "$rc" != 0 ] && [ "$rc" != 1 ]
ok $? 'a store that is not there is an error of its own'
run "$hf" trap --ttl 1ms
is "$rc" 64 'a ttl that is too short'
run "$hf" trap --svg /no/such/dir/x.svg --ttl 200ms
is "$rc" 69 'a picture that cannot be written'
unlike "$out" 'worker 1' 'is found out before the story is played'
# Told to stop in the middle of it.
mkdir "$dir/tmp"
TMPDIR=$dir/tmp "$hf" trap --ttl 20s >"$dir/out" 2>"$dir/err" &
trap_pid=$!
began() { [ "$(wc -w <"/proc/$trap_pid/task/$trap_pid/children")" = 2 ]; }
within 20 began
workers=$(cat "/proc/$trap_pid/task/$trap_pid/children")
kill -TERM "$trap_pid"
{ wait "$trap_pid"; } 2>/dev/null
is "$?" 143 'it ends by the signal'
is "$(ls -A "$dir/tmp")" '' 'and takes its folder with it'
# shellcheck disable=SC2086 # they are words
[ -n "$workers" ] && ! kill -0 $workers 2>/dev/null
ok $? 'and its workers'
run "$hf" trap now
is "$rc" 64 'no operands'
done_testing
