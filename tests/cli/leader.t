#!/bin/bash
# holdfast leader: who leads, since when, where; and only if it is true.
set -u
. "$(dirname "$0")/lib.sh"

leader() { "$hf" leader "$@"; }
field() { # JSON FIELD
    jq -r ".$2" <<<"$1"
}

run leader sched
is "$rc:$out" '1:sched: nobody leads' 'nobody leads: exit 1'
[ ! -e "$dir/store" ]
ok $? 'and looking made no store'

start "$hf" leader --watch sched >"$dir/watch" 2>"$dir/watch.err"
watcher=$pid
start "$hf" leader --watch --json sched >"$dir/watch.json"
json_watcher=$pid
within 10 lines "$dir/watch" 1

mkfifo "$dir/hold"
start "$hf" elect --label 'node "1"' --address 10.0.0.1:8080 sched -- sh -c "echo \$HOLDFAST_TERM >$dir/term; read -r _ <$dir/hold" 2>/dev/null
first=$pid
within 10 test -s "$dir/term"
term=$(cat "$dir/term")
run leader sched
is "$rc" 0 'somebody leads: exit 0'
like "$out" "^sched: node \"1\" leads since 20[0-9T:-]+Z \([0-9.]+m?s\), address 10.0.0.1:8080, term $term\$" \
    'who, since when, where, and the term'
run leader --json sched
is "$(field "$out" label)" 'node "1"' 'JSON: label'
is "$(field "$out" address)" 10.0.0.1:8080 'address'
is "$(field "$out" term)" "$term" 'term'
is "$(field "$out" name):$(field "$out" leads)" sched:true 'name and leads'
like "$(field "$out" since) $(field "$out" at)" '^20[0-9T:-]+Z 20[0-9T:-]+Z$' 'since and at'
is "$(grep -o '"[a-z]*":' <<<"$out" | tr -d '":' | tr '\n' ' ')" 'at name leads label since address term ' \
    'these are its fields'
unlike "$out" '[[:xdigit:]]{32}' 'no owner'
within 10 grep -q 10.0.0.1 "$dir/watch"
ok $? '--watch tells of it'

# An address is believed only if the present holder wrote it.
kill -TERM "$first"
ended "$first"
within 10 lines "$dir/watch" 3
start "$hf" elect --label node2 sched -- sh -c "echo up >$dir/up2; read -r _ <$dir/hold" 2>/dev/null
second=$pid
within 10 test -s "$dir/up2"
run leader --json sched
is "$(field "$out" label):$(field "$out" address)" node2:null 'a leader that tells no address does not inherit one'
within 10 lines "$dir/watch" 4
kill -TERM "$second"
ended "$second"
within 10 lines "$dir/watch" 5
run leader sched
is "$rc" 1 'nobody leads again'
run leader --json sched
is "$rc:$(field "$out" leads):$(field "$out" address):$(field "$out" term)" 1:false:null:null 'as JSON'
run "$hf" run --label plain sched -- "$hf" leader sched
like "$out" '^sched: plain leads since' 'whoever holds the lock leads, with run as well'

is "$(sed 's/^[^ ]* //; s/ since.*//' "$dir/watch" | head -n 5)" $'sched: nobody leads\nsched: node "1" leads\nsched: nobody leads\nsched: node2 leads\nsched: nobody leads' \
    '--watch: each change, nobody included, also of a store that came later'
within 10 lines "$dir/watch.json" 5
perl -MJSON::PP -ne 'decode_json($_)' "$dir/watch.json"
ok $? '--watch --json: an object on each line'
is "$(cat "$dir/watch.err")" '' 'and nothing else is said'
kill -TERM "$watcher" "$json_watcher"
ended "$watcher"

# The reader of --watch leaves, and nothing changes any more.
start bash -c "'$hf' leader --watch sched 2>/dev/null | head -n 1 >$dir/one; echo over >$dir/over"
within 15 test -s "$dir/over"
ok $? 'a reader that leaves ends it'

# An odd address is shown without harm, an odd record not at all.
long=$(printf 'x%.0s' {1..1024})
start "$hf" elect --address "$long" long -- sh -c "echo up >$dir/up3; read -r _ <$dir/hold" 2>/dev/null
within 10 test -s "$dir/up3"
run leader --json long
is "$(field "$out" address)" "$long" 'an address of 1024 bytes'
kill -TERM "$pid"
ended "$pid"
run "$hf" elect --address "x$long" long -- true
is "$rc" 64 'not of more'
start "$hf" elect --address $'\xe2\x80\xaeodd\xff"' odd -- sh -c "echo up >$dir/up4; read -r _ <$dir/hold" 2>/dev/null
within 10 test -s "$dir/up4"
run leader odd
like "$out" 'address \?odd\?"' 'what steers a terminal is not shown'
run leader --json odd
like "$out" '"address": "\\u202eodd.*\\""' 'and escaped in JSON'
kill -TERM "$pid"
ended "$pid"

run leader
is "$rc" 64 'a name is needed'
run leader a b
is "$rc" 64 'and only one'
run "$hf" --store nosuch://h leader a
is "$rc" 64 'a store that is none'
run timeout 20 "$hf" --store nosuch://h leader --watch a
is "$rc" 64 'also with --watch'

done_testing
