#!/bin/bash
# storm.t - the embedded store under a storm: 20,000 holds by workers that are killed and frozen, while
# others look, come and go, and are stopped wherever they are.
# run: long
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/storm.sh"

url=file:$dir/store

# shellcheck disable=SC2317 # storm calls it
# A passer-by is stopped at a random instant, perhaps in the middle of a change, and goes on or dies.
passer_by() {
    local pid
    "$hf" --store "$url" list >/dev/null 2>&1
    "$hf" --store "$url" run -n --ttl 2s "passing-$((RANDOM % 20))" -- sleep 0.0$((RANDOM % 5)) \
        >/dev/null 2>&1 &
    pid=$!
    sleep "0.0$((RANDOM % 4))$((RANDOM % 10))"
    if kill -STOP "$pid" 2>/dev/null; then
        sleep "0.$((RANDOM % 4))"
        [ $((RANDOM % 3)) -ne 0 ] || kill -KILL "$pid" 2>/dev/null
        kill -CONT "$pid" 2>/dev/null
    fi
    wait "$pid" 2>/dev/null
    "$hf" --store "$url" repair >/dev/null 2>&1 # refused while others use it
}

storm 'kills, freezes and passers-by' "$url" 20000 900 400 passer_by
"$hf" --store "$url" run after -- true
is $? 0 'the store is in order afterwards'
"$hf" --store "$url" repair 2>&1 | grep -q 'is sound'
is $? 0 'and sound'
done_testing
