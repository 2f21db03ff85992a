#!/bin/bash
# A fixed number of runs of the fuzz target for replies, from a fixed seed.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

fuzz_build "$root/tests/fuzz/fuzz_redis_reply.c" "$root"/src/stores/redis/{wire/reply,errors}.c \
    "$build/gen/redis.c" "$root"/src/base/{error,text}.c -lhiredis
printf '\003*3\r\n$4\r\nbusy\r\n:-7\r\n$-1\r\n' | seed array
printf '\100-MOVED 3999 127.0.0.1:6381\r\n' | seed moved
printf '\011-NOPERM no permissions to run the '"'"'x'"'"' command\r\n+OK\r\n' | seed error
# An error inside a script, on a line that it does not have.
sha=$(sed -n 's/.*{"release", "\([0-9a-f]\{40\}\)".*/\1/p' "$build/gen/redis.c")
printf '\077-NOPERM script: %s, on @user_script:9999.\r\n' "$sha" | seed line
fuzz_run 512 'no reply breaks the parser'
done_testing
