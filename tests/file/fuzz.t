#!/bin/bash
# Whatever a slot file says, the embedded store neither crashes nor reads what is not there.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

fuzz_build "$root/tests/fuzz/fuzz_file_slots.c" "$root"/src/stores/file/*.c "$root"/src/base/*.c \
    "$root"/src/core/*.c
# A head's born and depth, its first pages, a slot's times and tickets.
printf '\001\000\014\017\377\377\377\377\377\377\377\377\001\000\000\000\001\000\000\000' | seed head
printf '\002\000\020\017\021\000\000\000\021\000\000\000\021\000\000\000\021\000\000\000' | seed pages
printf '\003\001\010\017\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377' | seed times
printf '\004\001\040\017\001\000\000\000\000\000\000\000\377\377\377\377\377\000\000\000' | seed tickets
export FUZZ_DIR=$dir
# Each run is a few dozen system calls, so one where others have fifty.
FUZZ_RUNS=$((${FUZZ_RUNS:-200000} / 50)) fuzz_run 256 'any slot file'
done_testing
