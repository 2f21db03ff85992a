#!/bin/bash
# A fixed number of runs of the fuzz target for the children of a lock, from a fixed seed.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"

if ! clang -fsanitize=fuzzer,address -g -O1 -std=c11 -D_GNU_SOURCE -I"$root/include" -I"$root/src" \
    -o "$dir/fuzz" "$root/tests/fuzz/fuzz_zookeeper_line.c" "$root/src/stores/zookeeper/line.c" \
    "$root"/src/base/{error,text}.c 2>"$dir/log"; then
    skip_all "clang with libFuzzer, or the ZooKeeper library, is not installed: $(head -n 1 "$dir/log")"
fi
mkdir "$dir/corpus"
owner=00112233445566778899aabbccddeeff
printf '%s-lock-0000000007\n_c_uuid-lock-0000000006\nx__lock__0000000011\n' $owner >"$dir/corpus/line"
printf '%s-lock-2147483647\n%s-lock--2147483648\n' $owner $owner >"$dir/corpus/wrapped"
printf '1 30000 0 host/1/job\n1 99999999999 0 x\n2 5 x' >"$dir/corpus/data"
"$dir/fuzz" -runs="${FUZZ_RUNS:-200000}" -seed=1 -max_len=512 -max_total_time=60 "$dir/corpus" \
    >"$dir/log" 2>&1
ok $? 'no child breaks the line'
[ "$failed" -eq 0 ] || tail -n 20 "$dir/log" | sed 's/^/# /'
done_testing
