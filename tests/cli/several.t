#!/bin/bash
# Several locks at once: --all, --any, --slots, on run, acquire and elect; what CMD gets; what list shows.
# shellcheck disable=SC2016 # what CMD is to expand
set -u
. "$(dirname "$0")/cmd.sh"
cd "$dir" || exit 1

forget() { unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_TOKENS HOLDFAST_OWNERS HOLDFAST_SLOT; }
held() { holdfast list --names 2>/dev/null | tr '\n' ' '; }

# --all
run holdfast run --all b a c -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"; echo "$HOLDFAST_TOKENS" >tokens; "$0" list --names' "$hf"
is "$rc" 0 'run --all'
is "$(sed 1d <<<"$out" | tr '\n' ' ')" 'a b c ' 'holds all of them'
like "$(head -n 1 <<<"$out")" '^a [1-9][0-9]*$' 'HOLDFAST_NAME is the first by name'
is "$(jq -r '.a' tokens)" "$(head -n 1 <<<"$out" | cut -d ' ' -f 2)" 'and HOLDFAST_TOKEN its token'
is "$(jq -r 'keys | join(" ")' tokens)" 'a b c' 'HOLDFAST_TOKENS is JSON, with all of them'
is "$(sed -n 's/^"b": \([0-9]*\),*$/\1/p' tokens)" "$(jq -r .b tokens)" 'and a shell finds one by its line'
is "$(held)" '' 'all are given back'
eval "$(holdfast acquire --ttl 1m b)"
run holdfast run -n --all a b c -- true
is "$rc" 75 'all or nothing: one is busy'
has "$err" '"b"' 'which one is said'
is "$(held)" 'b ' 'and nothing is kept'
run holdfast run -w 300ms --all a b c -- true
is "$rc" 75 'also after a wait'
is "$(held)" 'b ' 'nothing is kept'
holdfast run --all c b a -- echo all >late 2>&1 &
waiter=$!
check 'those before it are held meanwhile' within 20 sh -c '[ "$("$0" list --names a)" = a ]' "$hf"
holdfast release b
wait $waiter
is "$(cat late)" all 'it has all of them once the last is free'
forget

# Names
run holdfast run -n --all a a -- true
is "$rc" 64 'a lock that is named twice is refused'
run holdfast run a b -- true
is "$rc" 64 'two names without --all or --any are'
run holdfast run --all --any a b -- true
is "$rc" 64 'both of these are'
run holdfast run --slot 1 a -- true
is "$rc" 64 '--slot without --slots is'
run holdfast run --slots 65 a -- true
is "$rc" 64 'and more than 64 slots'
run holdfast run --slots 2 --slot 2 a -- true
is "$rc" 64 'and a slot that is not there'
# shellcheck disable=SC2046 # 65 words
run holdfast run --all $(seq 65) -- true
is "$rc" 64 'and 65 names'
run holdfast run --at-least 1m --all a b -- true
is "$rc" 64 '--at-least is for one lock'

# --any
eval "$(holdfast acquire --ttl 1m a)"
run holdfast run --any a b c -- sh -c 'echo "$HOLDFAST_NAME ${HOLDFAST_SLOT-none}"; echo "$HOLDFAST_TOKENS" | jq -r "keys | join(\" \")"'
is "$rc$out" $'0b none\nb' 'run --any takes the first that is free'
holdfast release
forget

# --slots
run holdfast run --slots 3 gpu -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_SLOT"'
is "$out" 'gpu#0 0' '--slots takes one, and says which'
run holdfast run --slots 3 --slot 2 gpu -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_SLOT"'
is "$out" 'gpu#2 2' '--slot takes a certain one'
run holdfast run --slots 2 gpu -- "$hf" run --no-reenter -n --slots 2 --slot 1 gpu -- \
    "$hf" run --no-reenter -n --slots 2 gpu -- true
is "$rc" 75 'two of two are held: the third is busy'
run holdfast run plain -- sh -c 'echo "${HOLDFAST_SLOT-none}"'
is "$out" none 'no slot without --slots'
run env HOLDFAST_SLOT=7 HOLDFAST_TOKENS=x "$hf" run plain -- sh -c 'echo "${HOLDFAST_SLOT-none}" "$HOLDFAST_TOKENS"'
like "$out" '^none {' 'also if one is inherited'

# list and slots
holdfast run --slots 4 gpu -- sh -c 'touch up; while [ ! -e down ]; do sleep 0.05; done' &
holder=$!
within 20 test -e up
holdfast run --slots 4 --slot 3 gpu -- sh -c 'touch up3; while [ ! -e down ]; do sleep 0.05; done' &
other=$!
within 20 test -e up3
run holdfast list
like "$out" 'gpu#0..3: 2 of 4 held' 'list shows slots as one line'
check 'and not each of them' not grep -q '^gpu#3 ' <<<"$out"
run holdfast list --flat
like "$out" 'gpu#3 ' 'list --flat shows each of them'
run holdfast slots gpu
is "$rc" 0 'slots'
like "$out" '^gpu#0..3: 2 of 4 held' 'says how many'
like "$out" '   1 .*free' 'which are free'
like "$out" '   3 .*/sh' 'and who has which'
run holdfast slots --json gpu
json '.held == 2 and .slots[1].slot == 3 and .slots[1].lock.held' 'slots --json'
holdfast run --slots 4 --slot 3 gpu -- true 2>/dev/null &
third=$!
within 20 sh -c '"$0" slots gpu | grep -q "1 waiting"' "$hf"
run holdfast slots gpu
like "$out" '2 of 4 held, 1 waiting' 'slots shows who waits'
touch down
wait $holder $other $third
run holdfast slots gpu
has "$err" 'no slot of "gpu"' 'none is held'
run holdfast slots
is "$rc" 64 'slots needs a name'

# Nested runs
run holdfast run --all b c -- "$hf" run --all c b -- echo nested
is "$rc$out" 0nested 'a nested --all of the same locks runs at once'
run holdfast run --all b d -- "$hf" run --all a b c -- sh -c 'echo "$HOLDFAST_NAME"; echo "$HOLDFAST_TOKENS" | jq -r "keys | join(\" \")"; "$0" list --names | tr "\n" " "' "$hf"
is "$rc$out" $'0a\na b c\na b c d ' 'of others, what the tree holds is not taken again'
run holdfast run --slots 3 --slot 1 gpu -- "$hf" run --slots 3 gpu -- sh -c 'echo "$HOLDFAST_SLOT"'
is "$rc$out" 01 'a nested --slots runs with the slot that is held'
run holdfast run --all b c -- "$hf" run --no-reenter --all a b -- true
is "$rc" 75 '--no-reenter refuses if one of them is held'
eval "$(holdfast acquire --ttl 1m a)"
started=$SECONDS
run timeout 20 "$hf" run m -- "$hf" run --all a z -- true
is "$rc" 75 'what comes before a lock that is held above is never waited for'
has "$err" 'holds "m"' 'and that is said'
check 'at once' [ $((SECONDS - started)) -lt 10 ]
run timeout 20 "$hf" run m -- "$hf" run --wait 10s --all a -- true
is "$rc" 75 'nor if it is the only one that is named'
has "$err" 'not waited for' 'and that is said too'
holdfast release
forget
eval "$(holdfast acquire --ttl 1m z)"
holdfast run m -- "$hf" run --all n z -- echo waited >late 2>&1 &
waiter=$!
check 'what comes after it is' within 20 sh -c '"$0" status --json z | jq -e ".waiters == 1" >/dev/null' "$hf"
holdfast release
wait $waiter
is "$(cat late)" waited 'and had'
forget
eval "$(holdfast acquire --ttl 1m z)"
holdfast run m -- "$hf" run --wait 5s --all m z -- true 2>late &
waiter=$!
check 'of one that is left it says no more than of one' within 20 grep -q 'for "z", held ' late
holdfast release
wait $waiter
forget

# The loss of one
holdfast run --ttl 3s --grace 500ms --all a b -- sh -c 'echo "$HOLDFAST_HELD" >entries; sleep 30' 2>lost &
job=$!
within 20 test -s entries
owner() { tr ' ' '\n' <entries | awk -F, -v name="$1" '$2 == name { print $3, $4 }'; }
read -r owner token <<<"$(owner b)"
HOLDFAST_NAME=b HOLDFAST_OWNER=$owner HOLDFAST_TOKEN=$token holdfast release
wait $job
is $? 123 'the loss of one ends the job'
has "$(cat lost)" '"b"' 'which one is said'
is "$(held)" '' 'and the others are given back'

# acquire, renew, release
eval "$(holdfast acquire --ttl 1m --all y x)"
is "$?$HOLDFAST_NAME" 0x 'acquire --all'
is "$(held)" 'x y ' 'holds all'
check 'HOLDFAST_TOKENS is there' test "$(jq -r .x <<<"$HOLDFAST_TOKENS")" = "$HOLDFAST_TOKEN"
run holdfast renew --ttl 1h
is "$rc$out$err" 0 'renew'
run holdfast status --json y
json '.remaining_ms > 3000000' 'renews all of them'
run holdfast release y
is "$rc" 0 'one of them can be released'
is "$(held)" 'x ' 'by its name'
run holdfast renew
is "$rc" 123 'the loss of one is the loss of all'
run holdfast release
is "$rc" 123 'also when they are released'
is "$(held)" '' 'but what is left is free'
run holdfast acquire -n --all x y --json
json 'length == 2 and .[0].name == "x" and .[1].token > 0' 'acquire --all --json'
eval "$(env -u HOLDFAST_OWNERS -u HOLDFAST_TOKENS "$hf" acquire --slots 2 s)"
is "$?$HOLDFAST_SLOT$HOLDFAST_NAME" '00s#0' 'acquire --slots'
eval "$(holdfast acquire w)"
is "${HOLDFAST_OWNERS-none}${HOLDFAST_SLOT-none}" nonenone 'acquire of one lock forgets what is about several'
run holdfast release
is "$rc" 0 'and is released by itself'
forget

# fence
run holdfast run --all p q -- "$hf" fence write file -- echo x
is "$rc" 64 'a fence under --all has to be told which token is meant'
has "$err" '--lock' 'and how'
run holdfast run --all p q -- sh -c 'echo one | "$0" fence write --lock q file && "$0" fence show file' "$hf"
is "$rc" 0 'by --lock'
run holdfast run --all p q -- "$hf" fence enter --lock r file
is "$rc" 64 'of those that are held'
run holdfast run --any p q -- "$hf" fence enter file2
is "$rc" 0 'one token needs no word'

# elect
run holdfast elect --restart no --slots 2 shard -- sh -c 'echo "$HOLDFAST_SLOT $HOLDFAST_TERM $HOLDFAST_TOKEN"'
like "$out" '^0 ([0-9]+) \1$' 'elect --slots'
run holdfast elect --restart no --any e f -- sh -c 'echo "$HOLDFAST_NAME"'
is "$out" e 'elect --any'
run holdfast elect --restart no --all e f -- sh -c '"$0" list --names | tr "\n" " "' "$hf"
has "$out" 'e f' 'elect --all'
done_testing
