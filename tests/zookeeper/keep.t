#!/bin/bash
# holdfast keep where there are no detached leases: the keeper holds the lock itself.
set -u
. "$(dirname "$0")/lib.sh"
zk_start a
HOLDFAST_STORE=zookeeper://$(hosts a)
export HOLDFAST_STORE

cat >"$dir/script" <<END
eval "\$($hf keep --pid \$\$ --ttl 5s deploy)" || exit
echo "\$HOLDFAST_TOKEN" >$dir/token
while [ ! -e $dir/go ]; do sleep 0.1; done
END
sh "$dir/script" 2>"$dir/err" &
script=$!
eventually 20 test -s "$dir/token"
above "$(cat "$dir/token")" 0 'the script has a token'
"$hf" status --held deploy >/dev/null
is $? 0 'and the lock'
sleep 7
out=$("$hf" status deploy --json)
like "$out" "*\"token\": $(cat "$dir/token"),*" 'and the same hold after more than its ttl'
touch "$dir/go"
wait $script
is $? 0 'it ends as it likes'
eventually 10 "$hf" status --free deploy
ok $? 'and the lock is free'
is "$(cat "$dir/err")" '' 'nothing was said'
done_testing
