#!/bin/bash
# storm.t - the referee of the storms, on a store that grants everything.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/storm.sh"

HOLDFAST_STORE_PATH=$(realpath "$build")/tests/plugins
export HOLDFAST_STORE_PATH
"$build/tests/tools/tool_storm" tiny: 50 30 1000 4 >"$dir/storm" 2>&1
is $? 1 'a store that grants twice does not pass'
above "$(storm_count overlap)" 0 'the overlaps are counted'
above "$(storm_count holds)" 49 'and the holds'
grep -q '^overlap: lock ' "$dir/storm"
ok $? 'and told'
done_testing
