#!/bin/bash
# Programs over holdfast/once.h at each border of a slot, five at a time: by themselves, and with `holdfast once`
# among them. Killed, frozen and late, as in once.t.
# run: also long
# run: first
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/support/once_storm.sh"

once_program=$build/tests/tools/tool_once
once_storm 'five in C' "file:$dir/store" name=c keys=4 slots=2 period=10 skew=0 slack=104 ttl=3000
# By the number of the process, which stays the same.
printf '#!/bin/sh\n[ $(($$ %% 2)) -eq 0 ] && exec "%s" "$@"\nexec "%s" "$@"\n' "$once_program" "$hf" >"$dir/either"
chmod +x "$dir/either"
once_program=$dir/either
once_storm 'in C or as a command' "file:$dir/store" name=either keys=4 slots=2 period=10 skew=0 slack=104 ttl=3000
done_testing
