#!/bin/bash
# A file of credentials, however it looks, is read without harm.
# run: once
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"
fuzz_build "$root/tests/fuzz/fuzz_serve_credentials.c" "$root/src/serve/credential_table.c" "$root/src/base/text.c" "$root/src/base/time.c"
printf '# who\nbackup %064d look lock:backup/\n\nscraper %064d metrics\n' 1 2 | seed good
printf 'x  %064d\tlook:a:b  lock\nbad\n' 3 | seed odd
fuzz_run 400 'the lines of credentials'
done_testing
