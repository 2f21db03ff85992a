#!/bin/bash
# A fixed number of runs of the fuzz target for replies, from a fixed seed.
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

if ! clang -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -g -O1 -std=c11 -D_GNU_SOURCE -I"$root/include" -I"$root/src" \
    -o "$dir/fuzz" "$root/tests/fuzz/fuzz_redis_reply.c" "$root"/src/stores/redis/{reply,verdict}.c \
    "$build/gen/redis.c" "$root"/src/base/{error,text}.c -lhiredis 2>"$dir/log"; then
    echo "1..0 # SKIP clang with libFuzzer is not installed: $(head -n 1 "$dir/log")"
    exit 0
fi
mkdir "$dir/corpus"
printf '\003*3\r\n$4\r\nbusy\r\n:-7\r\n$-1\r\n' >"$dir/corpus/array"
printf '\100-MOVED 3999 127.0.0.1:6381\r\n' >"$dir/corpus/moved"
printf '\011-NOPERM no permissions to run the '"'"'x'"'"' command\r\n+OK\r\n' >"$dir/corpus/error"
# An error inside a script, on a line that it does not have.
sha=$(sed -n 's/.*{"release", "\([0-9a-f]\{40\}\)".*/\1/p' "$build/gen/redis.c")
printf '\077-NOPERM script: %s, on @user_script:9999.\r\n' "$sha" >"$dir/corpus/line"
"$dir/fuzz" -runs="${FUZZ_RUNS:-200000}" -seed=1 -max_len=512 -max_total_time=60 \
    -artifact_prefix="$dir/" "$dir/corpus" >"$dir/log" 2>&1
ok $? 'no reply breaks the parser'
[ "$failed" -eq 0 ] || tail -n 20 "$dir/log" | sed 's/^/# /'
done_testing
