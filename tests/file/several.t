#!/bin/bash
# several.t - several locks at once in the embedded store: a killed waiter costs nothing, a second grant goes on.
# run: also long
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/several.sh"

several "file:$dir/store" 500 500
done_testing
