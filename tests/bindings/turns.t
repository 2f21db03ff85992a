#!/bin/bash
# turns.t - processes of every language take turns on one counter, first come, first served; and whoever is killed
# hands the embedded lock on within 10 ms. HOLDFAST_LONG=1: more turns, and as many on Redis.
# run: once, run: first, run: also long
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
two_stores
[ -n "${HOLDFAST_LONG-}" ] || export STORES="file=${store_url[file]}"
timeout 280 python3 "$here/cases.py" turns "$([ -n "${HOLDFAST_LONG-}" ] && echo 10000 || echo 3000)" >"$dir/turns"
turned=$?
STORES="file=${store_url[file]}" timeout 120 python3 "$here/cases.py" kill >"$dir/kill"
killed=$?
cat "$dir/turns" "$dir/kill" | awk '/^1\.\./ { next } /^(not )?ok/ { sub(/ok [0-9]+/, "ok " ++n) } { print } END { print "1.." n }'
[ $turned -eq 0 ] && [ $killed -eq 0 ]
