#!/bin/bash
# A fixed number of runs of the fuzz target for the server's answers, from a fixed seed.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

# shellcheck disable=SC2046 # flags
fuzz_build $(pkg-config --cflags libpq) "$root/tests/fuzz/fuzz_postgres_row.c" \
    "$root"/src/stores/postgres/{row,errors}.c "$root"/src/base/*.c -lpq
row() { # NAME COLUMNS CELL... : a seed of one row
    local name=$1 columns=$2
    shift 2
    { printf '%b\001' "\\0$(printf '%o' "$columns")" && printf '%s\n' "$@"; } | seed "$name"
}
null=$'\t'
row granted 7 granted 1794790406548627 "$null" "$null" "$null" "$null" 4711
row busy 7 busy 1794790406548627 1000 29000 held 686f73742f312f636d64 4711
row new 7 new "$null" "$null" "$null" "$null" "$null" 4711
row kept 4 held 20000 30000 4711
row lost 4 taken "$null" "$null" 4711
row met 7 open 5 7300000000000000001/00000002 "$null" "$null" "$null" 4711
row quarantine 7 quarantine 5 7300000000000000001/00000002 5000 "$null" promoted 4711
row opened 3 opened 5000 4711
row released 2 released 4711
row many 2 held 4711
row locked 2 locked 4711
row lock 9 6a6f62 t 1794790406548627 29000 1000 3 f 686f73742f312f636d64 1
row long-name 9 "$(printf '61%.0s' {1..201})" t 1 29000 1000 3 f 61 1
row long-label 7 busy 1 1000 29000 held "$(printf '61%.0s' {1..161})" 4711
printf '\001\001connection to server at "h" (::1), port 5432 failed: FATAL:  28P01: no\nLOCATION: x' |
    seed refused
fuzz_run 600 'no answer breaks what reads it'
done_testing
