#!/bin/bash
# Waiting through two servers on one Redis: order, clients that vanish, servers that die.
# run: first
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$(dirname "$0")/http.sh"

redis_start r --maxclients 4000
calm r
sock=$dir/b
serve_start --store "$(url r)"
server_pid[b]=${server_pid[serve]}
unset 'server_pid[serve]'
sock=$dir/a
serve_start --store "$(url r)"
server_pid[a]=${server_pid[serve]}
unset 'server_pid[serve]'
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/serve/wait.py" "$dir/a" "$dir/b" "$hf" "$(url r)" \
    "${server_pid[a]}" "${server_pid[b]}" | tee "$dir/tap" | grep -v '^1\.\.'
tests=$(grep -cE '^(not )?ok ' "$dir/tap")
failed=$(grep -c '^not ok ' "$dir/tap")
grep -q '^1\.\.' "$dir/tap"
ok $? 'all of it was run'
kill -TERM "${server_pid[b]}" 2>/dev/null
wait "${server_pid[b]}"
is $? 0 'a server that was told to end ends well'
unset 'server_pid[a]' 'server_pid[b]'
done_testing
