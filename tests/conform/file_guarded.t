#!/bin/sh
# file_guarded.t - the conformance suite over the embedded store where the words of locks are guarded.
# run: threads, run: first
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-conform.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export CONFORM_WHOLE=1 # nothing is begun where a byte lock may have to be waited for
"${BUILD:-build}/tests/conform/conform" "file:$dir/store?shared=group"
