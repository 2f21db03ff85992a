#!/bin/bash
# `holdfast once --per` on the embedded store: five processes at each border, killed, frozen and late.
# run: also long
# run: first
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/once_storm.sh"

once_storm 'kills, freezes, late starts' "file:$dir/store" keys=4 slots=4 period=8 skew=0 slack=83 ttl=1500
# The same schedule with and without slack: what makes the difference is the slack.
once_misses 'skew' "file:$dir/control" keys=10 slots=5 period=3 skew=200
storm_number=$((storm_number + 1))
perl "$root/tests/support/once_storm.pl" "$hf" "file:$dir/control2" dir="$dir/once$storm_number" servers=1 slack=300 \
    late=0 kill=0 freeze=0 fail=0 keys=10 slots=5 period=3 skew=200 >"$dir/once" 2>&1
is $? 0 'skew: one server with slack misses none'
sed '2q; s/^/#   /' "$dir/once"
done_testing
