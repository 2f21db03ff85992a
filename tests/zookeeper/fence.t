#!/bin/bash
# fence.t - fenced nodes in ZooKeeper: one multi on the node and on its mark.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/fence_keys.sh"

zk_start a
url=zookeeper://$(hosts a)
value() { kazoo a "
import sys
sys.stdout.buffer.write(k.get('$1')[0] if k.exists('$1') else b'(none)')"; }
mark() { kazoo a "print(k.get('$1.fence')[0].decode())"; }
kazoo a "k.create('/app')"
fence_keys "$url" /app/

# What is special here: paths.
put x /nowhere/k --token 5
like "$rc $answer" '64 *node above it does not exist*' 'the node above has to be there'
for bad in k /app/ //app /app/../x /holdfast /holdfast/job /app/k.fence; do
    put x "$bad" --token 5
    is "$rc" 64 "$bad is no key"
done
put x /app/ttl --token 5 --ttl 3s
like "$answer" '*does not expire*' 'a node does not expire'
put parent /app/parent --token 5
kazoo a "k.create('/app/parent/child')"
do_fence del /app/parent --token 6
like "$rc $answer" '64 *nodes below it*' 'a node with others below it is not deleted'
kazoo a "k.set('/app/k.fence', b'rubbish')"
put x /app/k --token 5
like "$answer" '*damaged*reset*' 'a mark that is none'
do_fence reset /app/k --reason 'somebody wrote over it'
put x /app/k --token 5
is "$rc" 0 'is made anew by a reset'
kazoo a "k.create('/deep')"
store=$url/deep
put chrooted /k --token 5
is "$(value /deep/k)" chrooted 'below a chroot'

# The mark changes between the reading and the writing.
proxy_start p a
store=zookeeper://$(hosts p)
put first /app/between --token 5
proxy p mode hold late
printf late | "$hf" fence set "$store" /app/between --token 6 >"$dir/out" 2>"$dir/err" &
late=$!
eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
printf next | "$hf" fence set "$url" /app/between --token 7
proxy p mode pass
proxy p let
wait $late
is $? 65 'a write that was overtaken by a higher token on its way is refused'
is "$(value /app/between)" next 'and has changed nothing'
done_testing
