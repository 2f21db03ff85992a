#!/bin/sh
# readme.t - the examples of the README do what they say: C, with every warning; cron's line and the unit,
# with nothing but what cron gives; the line for a script.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-readme.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

# The first block between ```c and ```.
awk '/^```c$/ { inside = 1; next } /^```/ && inside { exit } inside' README.md >"$dir/example.c"
echo 1..6
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

# cron and systemd know no PATH of ours; the program and the job stand for those that are installed.
cd - >/dev/null || exit 1
program=${HOLDFAST:-$PWD/$build/holdfast}
bare() { # COMMAND... : as cron would run it
    printf '%s\n' "$1" | sed "s|/usr/local/bin/holdfast|$program|; s|/usr/local/bin/report.sh|touch $dir/ran|" >"$dir/line"
    rm -f "$dir/ran"
    env -i PATH=/usr/bin:/bin HOME="$dir" HOLDFAST_DIR="$dir/store" sh "$dir/line" && [ -e "$dir/ran" ]
}
test_line() { # NUMBER DESCRIPTION COMMAND
    if [ -n "$3" ] && bare "$3"; then echo "ok $1 - $2"; else echo "not ok $1 - $2: $3"; fi
}
test_line 4 'the line for cron' "$(sed -n 's/^    0 3 \* \* \*  //p' README.md)"
test_line 5 'the unit for systemd' "$(sed -n 's/^    ExecStart=//p' README.md)"
rm -f "$dir/ran"
{ sed -n '/^eval .*keep/p' README.md && echo "holdfast status --held deploy && touch $dir/ran"; } >"$dir/script"
if PATH=$(dirname "$program"):$PATH HOLDFAST_DIR=$dir/store sh "$dir/script" >/dev/null && [ -e "$dir/ran" ]; then
    echo 'ok 6 - the line for a script'
else
    echo 'not ok 6 - the line for a script'
fi
