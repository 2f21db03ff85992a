#!/bin/bash
# A fixed number of runs of the fuzz target for the children of a lock and its records, from a fixed seed.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

fuzz_build "$root/tests/fuzz/fuzz_zookeeper_queue.c" "$root"/src/stores/zookeeper/{name,queue,record}.c \
    "$root"/src/base/*.c
owner=00112233445566778899aabbccddeeff
printf '%s-lock-0000000007\n_c_uuid-lock-0000000006\nx__lock__0000000011\n' $owner | seed queue
printf '%s-lock-2147483647\n%s-lock--2147483648\n' $owner $owner | seed wrapped
printf '1 30000 0 host/1/job\n1 99999999999 0 x\n2 5 x' | seed data
printf '1 42 7 3600000\tvalue\n%%2E%%2E\n100%%25\n%%2e' | seed record
fuzz_run 512 'no child breaks the queue, and no record the reader'
done_testing
