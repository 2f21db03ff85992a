#!/bin/bash
# `holdfast torture`: a sound store passes, two that are broken on purpose do not; whatever ends it, its
# workers end too, and nothing stays behind.
# run: first
set -u
. "$(dirname "$0")/cmd.sh"
plugins=$(realpath "$(dirname "$hf")")/tests/plugins
[ -e "$plugins/twice.so" ] || { echo "Bail out! no plugins in $plugins"; exit 1; }

# A worker that is killed just as it makes its FIFO leaves it under the name it had until then, .CLIENT, which says nothing
# about anybody, and the store's sweep removes it later.
left() { # what a store's files say about tortures
    grep -rla torture "$dir/store" 2>/dev/null
    find "$dir/store/alive" "$dir/store/queue" -type p ! -name '.*' 2>/dev/null
}

run holdfast torture --for 5s --ttl 1s --svg "$dir/torture.svg"
is "$rc" 0 'the embedded store passes'
like "$out" 'seed [0-9]+' 'the seed is told'
like "$out" '^  killed +[1-9]' 'workers were killed'
like "$out" '^  frozen +[1-9].*came after' 'and frozen, and somebody took over'
like "$out" 'none to cut' 'it has no connections, and it says so'
like "$out" '^  lost +0 ' 'nothing was lost behind the fence'
like "$out" '^Without the fence [1-9][0-9]* of|happened to lose nothing' 'and what was without it'
like "$out" '^The names that were used are removed' 'its names are removed'
like "$out" 'What any first use of this store leaves: the directory' 'and what stays is told'
is "$(left)" '' 'indeed'
run holdfast list --json
is "$out" '[]' 'no lock is held'
check 'the picture is well-formed' \
    python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$dir/torture.svg"

run holdfast torture --for 1s --kill --json
is "$rc" 0 'only kills'
json '.kills > 0 and .freezes == 0 and .cuts == 0' 'and nothing else'
json '.sound and .names_left == 0' 'in JSON'
run holdfast torture --for 1s --freeze --ttl 30s --workers 2 --json
json '.unfenced.lost == 0 and .ttl_ms == 30000 and .workers == 2' 'nobody is overtaken in so short a time'
run holdfast torture --for 1s --freeze --ttl 30s
like "$out" 'happened to lose nothing this time' 'and that is called luck'

# Broken on purpose.
mkdir "$dir/crooked"
HOLDFAST_STORE_PATH=$plugins run holdfast --store "twice:$dir/crooked" torture --for 3s --ttl 1s
is "$rc" 1 'a store that grants twice is found'
like "$out" 'does not keep what a lock promises' 'and said'
like "$out" '^  overlap: lock' 'with the holds that overlapped'
like "$out" 'are still in the store: .*does not forget' 'and what it cannot remove'
HOLDFAST_STORE_PATH=$plugins run holdfast --store "repeats:$dir/crooked" torture --for 3s --ttl 1s --json
is "$rc" 1 'a store whose tokens repeat is found'
json '.disorders > 0 and .overlaps == 0 and .sound == false' 'by the order of its tokens'
HOLDFAST_STORE_PATH=$plugins run holdfast --store "repeats:$dir/none/such" torture --for 1s
is "$rc" 69 'a store where nothing can be held is an error of its own'
like "$err" 'no lock was ever held' 'and says so'

# Told to stop.
workers() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
began() { [ "$(wc -w <<<"$(workers "$1")")" -ge 9 ] && [ -n "$(holdfast list --names)" ]; }
gone() { local p; for p in "$@"; do [ ! -e "/proc/$p" ] || return 1; done; }
nothing_left() { [ -z "$(left)" ]; }
for signal in INT TERM; do
    env --default-signal=INT "$hf" torture --for 10m --ttl 1s >"$dir/out" 2>"$dir/err" &
    pid=$!
    started="$started $pid"
    check "$signal: it began" within 20 began "$pid"
    children=$(workers "$pid")
    kill -"$signal" "$pid"
    { wait "$pid"; } 2>/dev/null
    rc=$?
    is "$rc" $((128 + $(kill -l "$signal"))) "$signal ends it, as it would any program"
    # shellcheck disable=SC2086 # they are words
    check "$signal: its workers ended" gone $children
    like "$(cat "$dir/out")" 'until it was stopped' "$signal: what was found by then is told"
    check "$signal: nothing is left" nothing_left
done
"$hf" torture --for 10m --ttl 1s >"$dir/out" 2>"$dir/err" &
pid=$!
started="$started $pid"
check 'KILL: it began' within 20 began "$pid"
children=$(workers "$pid")
kill -KILL "$pid"
{ wait "$pid"; } 2>/dev/null
# shellcheck disable=SC2086
check 'KILL: its workers, and who cleans up, end' within 20 gone $children
check 'KILL: nothing is left' within 20 nothing_left # of workers that were begun meanwhile, too

# Stores that are down, or hang; arguments that make no sense.
run holdfast --store redis://127.0.0.1:1 torture
is "$rc" 69 'a store that is down'
run holdfast torture --for 0
refused 64 'at least 1s' 'no time'
run holdfast torture --for -5s
refused 64 'is not a duration' 'a negative time'
run holdfast torture --workers 1
refused 64 'from 2 to 32' 'a lonely worker'
run holdfast torture --workers 99999999999999999999
refused 64 'is not a whole number' 'more workers than numbers'
run holdfast torture --ttl 1ms
refused 64 'too short' 'a ttl that is none'
run holdfast torture now
refused 64 'unexpected word' 'no operands'
run holdfast torture --svg /no/such/dir/x.svg
refused 69 'cannot write' 'a picture that cannot be written'
unlike "$out" 'Torturing' 'is found out before anything begins'

done_testing
