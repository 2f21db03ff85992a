#!/bin/bash
# holdfast torture on a redlock of the user's own.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

nodes 3
tortures "$(redlock '' n1 n2 n3)"
left() { for n in n1 n2 n3; do rcli $n keys '*torture*'; done; }
is "$(left)" '' 'no node has a key of it'
torture_killed "$(redlock '' n1 n2 n3)" left
done_testing
