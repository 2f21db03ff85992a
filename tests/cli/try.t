#!/bin/bash
# What `make try` and the build of a package show: a job under a lock; and an end, if the job cannot start.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
try=$(cd "$(dirname "$0")/../.." && pwd)/scripts/try.sh

run "$try" "$hf"
is "$rc" 0 'a job runs under a lock'
like "$out" 'exit code 75' 'another one is refused'
printf '#!/bin/sh\necho "no lock today" >&2\nexit 64\n' >"$dir/holdfast"
chmod +x "$dir/holdfast"
run timeout 20 "$try" "$dir/holdfast"
is "$rc" 1 'a job that cannot start is the end'
like "$err" 'no lock today' 'with its reason'
done_testing
