#!/bin/bash
# Whatever the file of a record says, nothing is read that is not there.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

fuzz_build "$root/tests/fuzz/fuzz_file_record.c" "$root"/src/stores/file/*.c "$root"/src/base/*.c \
    "$root"/src/core/*.c
zeros() { head -c "$1" /dev/zero; }
# sum, magic and version are made to fit; then the lengths of name, key and value, token, number.
{
    zeros 20
    printf '\003\000\000\000\001\000\000\000\002\000\000\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    zeros 16
    printf 'jobkxy'
} | seed record
for key in k l; do # two of them
    zeros 20
    printf '\003\000\000\000\001\000\000\000\002\000\000\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    zeros 16
    printf 'job%sxy' "$key"
done | seed both
{
    zeros 20
    printf '\377\377\377\377\377\377\377\377\377\377\377\377\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    zeros 22
} | seed lengths
fuzz_run 400 "any record's file"
done_testing
