#!/bin/bash
# A finding of a fuzzer stays in the test's own folder, and its bytes are told.
# run: once
set -u
. "$(dirname "$0")/fuzz.sh"

cat >"$dir/target.c" <<'END'
#include <stdint.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 3 && data[0] == 'b' && data[1] == 'a' && data[2] == 'd')
        abort();
    return 0;
}
END
fuzz_build "$dir/target.c"
printf bad | seed one
mkdir "$dir/here"
said=$(cd "$dir/here" && fuzz_run 8 'a target that fails')
like "$said" 'not ok*a target that fails*' 'a finding fails the check'
like "$said" '*crash-*in base64:*'"$(printf bad | base64)"'*' 'its bytes are told'
is "$(ls -A "$dir/here")" '' 'nothing lands where the fuzzer was started'
printf good >"$dir/corpus/one"
said=$(fuzz_run 2 'a target that does not')
like "$said" 'ok*a target that does not*' 'without a finding the check is good'
done_testing
