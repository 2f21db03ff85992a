#!/bin/bash
# A fixed number of runs of the fuzz target for the server's answers, from a fixed seed.
# run: once
set -u
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2046 # flags
clang -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -g -O1 -std=c11 -D_GNU_SOURCE \
    -I"$root/include" -I"$root/src" $(pkg-config --cflags libpq) -o "$dir/fuzz" \
    "$root/tests/fuzz/fuzz_postgres_row.c" "$root"/src/stores/postgres/{row,verdict}.c \
    "$root"/src/base/{error,text}.c -lpq 2>"$dir/log" ||
    skip_all "clang with libFuzzer is not installed: $(head -n 1 "$dir/log")"
mkdir "$dir/corpus"
seed() { # NAME COLUMNS CELL... : one row
    local name=$1 columns=$2
    shift 2
    { printf '%b\001' "\\0$(printf '%o' "$columns")" && printf '%s\n' "$@"; } >"$dir/corpus/$name"
}
null=$'\t'
seed granted 7 granted 1794790406548627 "$null" "$null" "$null" "$null" 4711
seed busy 7 busy 1794790406548627 1000 29000 held 686f73742f312f636d64 4711
seed new 7 new "$null" "$null" "$null" "$null" "$null" 4711
seed kept 4 held 20000 30000 4711
seed lost 4 taken "$null" "$null" 4711
seed met 6 open 2 7300000000000000001/00000002 "$null" "$null" 4711
seed quarantine 6 quarantine 2 7300000000000000001/00000002 5000 "$null" 4711
seed released 2 released 4711
seed lock 8 6a6f62 t 1794790406548627 29000 1000 3 f 686f73742f312f636d64
seed long-name 8 "$(printf '61%.0s' {1..201})" t 1 29000 1000 3 f 61
seed long-label 7 busy 1 1000 29000 held "$(printf '61%.0s' {1..161})" 4711
printf '\001\001connection to server at "h" (::1), port 5432 failed: FATAL:  28P01: no\nLOCATION: x' \
    >"$dir/corpus/refused"
"$dir/fuzz" -runs="${FUZZ_RUNS:-300000}" -seed=1 -max_len=600 -max_total_time=40 "$dir/corpus" \
    >"$dir/log" 2>&1
ok $? 'no answer breaks what reads it'
[ "$failed" -eq 0 ] || tail -n 20 "$dir/log" | sed 's/^/# /'
done_testing
