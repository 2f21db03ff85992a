#!/bin/bash
# The parts that need no server: base64, URLs, keys, answers, watch streams; and a bounded run of the
# fuzz target over all of them, under the sanitizers.
# run: once
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
if ! pkg-config --exists libcjson; then
    echo '1..0 # SKIP cJSON is not installed'
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
parts='base64 url text record answer verdict holds'
sources=$(for part in $parts; do echo "src/stores/etcd/$part.c"; done)
compile() { # PROGRAM SOURCE...
    local program=$1
    shift
    # shellcheck disable=SC2046,SC2086 # lists of words
    cc -std=c11 -D_GNU_SOURCE -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -Iinclude \
        -Isrc -o "$dir/$program" "$@" $sources src/base/*.c $(pkg-config --cflags --libs libcjson)
}
compile parse tests/etcd/parse.c >&2 || exit 1
compile fuzz tests/etcd/fuzz_answer.c tests/etcd/fuzz_main.c >&2 || exit 1
"$dir/parse" >"$dir/tap"
sed '/^1\.\./d' "$dir/tap"
last=$(grep -c '^\(not \)\?ok' "$dir/tap")
seed=${FUZZ_SEED:-$RANDOM}
if "$dir/fuzz" "$seed" "${FUZZ_ROUNDS:-60000}" <tests/etcd/corpus >"$dir/out" 2>&1; then
    echo "ok $((last + 1)) - the fuzz target stands, FUZZ_SEED=$seed"
else
    echo "not ok $((last + 1)) - the fuzz target stands, FUZZ_SEED=$seed"
    sed 's/^/# /' "$dir/out" | tail -n 30
fi
echo "1..$((last + 1))"
