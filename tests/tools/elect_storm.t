#!/bin/bash
# The storm over candidates sees a leader's child that outlived its leader.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"

# Chance may spare it once: whom a fault meets is drawn by lot.
for i in 1 2 3; do
    ELECT_STORM_BLIND=1 perl "$root/tests/support/elect_storm.pl" "$hf" "file:$dir/store$i" 8 600 "$dir/elect$i" \
        >"$dir/said" 2>&1
    rc=$?
    [ $rc -eq 0 ] || break
done
is "$rc" 1 'two at once are found'
grep -q 'lives beside term' "$dir/said"
is $? 0 'and named'
tail -n 3 "$dir/said" | sed 's/^/# /'
done_testing
