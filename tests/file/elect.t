#!/bin/bash
# elect.t - five candidates on the embedded store, killed and frozen.
# run: also long
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/elect_storm.sh"

elect_storm 'file' "file:$dir/store" 20 1500 15 --address somewhere
done_testing
