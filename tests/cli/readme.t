#!/bin/sh
# readme.t - the C example of the README compiles, with every warning, and does what it says.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-readme.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

# The first block between ```c and ```.
awk '/^```c$/ { inside = 1; next } /^```/ && inside { exit } inside' README.md >"$dir/example.c"
echo 1..3
if grep -q 'int main' "$dir/example.c"; then
    echo 'ok 1 - the README has a C example'
else
    echo 'not ok 1 - the README has a whole C program in a block marked c'
fi

if cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude "$dir/example.c" -L"$build" -lholdfast \
    -Wl,-rpath,"$PWD/$build" -o "$dir/example" >"$dir/out" 2>&1; then
    echo 'ok 2 - it compiles'
else
    echo 'not ok 2 - it compiles'
    sed 's/^/# /' "$dir/out"
fi

# In a folder of its own, whatever store it names: the default is moved there too.
cd "$dir" || exit 1
if HOLDFAST_DIR=$dir/store HOLDFAST_STORE=file:$dir/store timeout 60 ./example >out 2>&1; then
    echo 'ok 3 - it runs'
else
    echo "not ok 3 - it runs (exit code $?)"
    sed 's/^/# /' out
fi
