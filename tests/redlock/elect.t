#!/bin/bash
# elect.t - elect, leader and run --at-least on Redlock, and five candidates that are killed and frozen.
# run: first
# run: also long
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/elect_storm.sh"

nodes 3
elect_on "$(redlock '' n1 n2 n3)" 10s nowhere
elect_storm redlock "$(redlock '' n1 n2 n3)" 25 2000 20
done_testing
