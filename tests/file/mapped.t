#!/bin/bash
# mapped.t - what the tests of the embedded store do to guarded words, again where words are mapped. Those that count
# system calls are left out.
# run: first, run: slow
# shellcheck disable=SC2317 # what stage.sh calls at the end
set -u
. "$(dirname "$0")/../support/stage.sh"
server_stop() { :; }

export KIT_MAPPED=1
for name in damage_slots hostile kill_storm moved records_storm; do
    "$root/${BUILD:-build}/tests/file/test_$name" >"$dir/out" 2>&1
    rc=$?
    [ "$rc" -eq 0 ] || sed 's/^/# /' "$dir/out"
    is "$rc" 0 "$name"
done
done_testing
