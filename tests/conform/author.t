#!/bin/sh
# author.t - the conformance suite as the author of a store uses it: by `make conform`.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-author.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
build=${BUILD:-build}
suite() { # URL
    HOLDFAST_STORE_PATH=$PWD/$build/tests/plugins timeout 200 make -s BUILD="$build" conform URL="$1" >"$dir/out" 2>&1
}

echo 1..4
suite "file:$dir/store"
planned=$(sed -n 's/^1\.\.//p' "$dir/out")
if [ "${planned:-0}" -ge 20 ] && [ "$(grep -Ec '^(not )?ok ' "$dir/out")" = "$planned" ]; then
    echo 'ok 1 - it runs to its end'
else
    echo 'not ok 1 - it runs to its end'
    sed 's/^/# /' "$dir/out"
fi
if suite tiny://host; then echo 'not ok 2 - a plugin that grants everything is found out'; else
    echo 'ok 2 - a plugin that grants everything is found out'
fi
if grep -q '^not ok .*one_holder\|^not ok .*busy\|^not ok .*held' "$dir/out"; then
    echo 'ok 3 - by what it does wrong'
else
    echo 'not ok 3 - by what it does wrong'
    sed 's/^/# /' "$dir/out"
fi
if grep -q 'make conform URL=' include/holdfast/store.h && grep -q 'make conform URL=' CONTRIBUTING.md; then
    echo 'ok 4 - the header says so'
else
    echo 'not ok 4 - the header says so'
fi
