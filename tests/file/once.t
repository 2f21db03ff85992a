#!/bin/bash
# `holdfast once --per` on the embedded store: five processes at each border, killed, frozen and late.
# run: also long
# run: first
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/once_storm.sh"

once_misses 'skew' "file:$dir/control" keys=10 slots=5 period=3 skew=200
once_storm 'kills, freezes, late starts' "file:$dir/store" keys=4 slots=4 period=10 skew=0 slack=104 ttl=3000
done_testing
