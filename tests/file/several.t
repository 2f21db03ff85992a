#!/bin/bash
# several.t - several locks at once in the embedded store: a killed waiter costs nothing, a second grant goes on.
# run: also long
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/several.sh"

several "file:$dir/store" 500 500
"$hf" --store "file:$dir/store" run after -- true # sweeps up behind those who were killed
is "$(find "$dir/store/queue" -type p | wc -l)" 0 'no FIFO of a waiter is left'
done_testing
