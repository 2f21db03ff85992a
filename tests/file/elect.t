#!/bin/bash
# elect.t - elect, leader and run --at-least on the embedded store, and five candidates that are killed and frozen.
# run: also long
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/elect_storm.sh"

elect_on "file:$dir/store" 30s
elect_storm file "file:$dir/store" 20 1500 15 --address somewhere
done_testing
