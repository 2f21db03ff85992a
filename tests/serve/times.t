#!/bin/bash
# How long a connection may idle, a request take, a reader do nothing, a network be away: at their real length.
# run: long
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/http.sh"

port=$(free_port)
serve_credential all look lock metrics
serve_start --store "file:$dir/store" --tokens "$dir/tokens" --listen "tcp:127.0.0.1:$port"
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/serve/times.py" "$sock" "$port" "$(cat "$dir/all.secret")" | tee "$dir/tap" | grep -v '^1\.\.'
tests=$(grep -cE '^(not )?ok ' "$dir/tap")
failed=$(grep -c '^not ok ' "$dir/tap")
grep -q '^1\.\.' "$dir/tap"
ok $? 'all of it was run'
done_testing
