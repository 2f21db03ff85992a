#!/bin/bash
# The storm over candidates sees a leader's child that outlived its leader.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"

ELECT_STORM_BLIND=1 perl "$root/tests/support/elect_storm.pl" "$hf" "file:$dir/store" 8 600 "$dir/elect" >"$dir/said" 2>&1
is $? 1 'two at once are found'
grep -q 'lives beside term' "$dir/said"
is $? 0 'and named'
tail -n 3 "$dir/said" | sed 's/^/# /'
done_testing
