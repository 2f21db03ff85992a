#!/bin/bash
# fence.t - fenced keys in etcd: one transaction on the key and on its mark.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/fence_keys.sh"

etcd_start a
url=$(url a)
value() {
    ctl a get "$1" -w json | jq -r 'if .kvs then .kvs[0].value // "" else "KG5vbmUp" end' | base64 -d # (none)
}
mark() { ctl a get "$1"$'\x1ffence' --print-value-only; }
fence_keys "$url" app/

# What is special here: a key that expires, and its mark that does not.
put soon app/ttl --token 5 --ttl 3s
is "$rc$(value app/ttl)" 0soon 'a key may expire'
eventually 15 eval '[ "$(value app/ttl)" = "(none)" ]'
is "$(value app/ttl)" '(none)' 'and does'
put late app/ttl --token 4
is "$rc" 65 'its mark does not'
put x $'holdfast/job\x1f' --token 5
is "$rc" 64 'a key of a lock is refused'
ctl a put app/bad$'\x1ffence' rubbish >/dev/null
put x app/bad --token 5
like "$answer" '*damaged*reset*' 'a mark that is none'
do_fence reset app/bad --reason 'somebody wrote over it'
put x app/bad --token 5
is "$rc" 0 'is made anew by a reset'

# The mark changes between the reading and the writing.
proxy_start p a
store=$(url p)
put first app/between --token 5
proxy p mode hold 'request_put'
printf late | "$hf" fence set "$store" app/between --token 6 >"$dir/out" 2>"$dir/err" &
late=$!
eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
printf next | "$hf" fence set "$url" app/between --token 7
proxy p mode pass
proxy p let
wait $late
is $? 65 'a write that was overtaken by a higher token on its way is refused'
is "$(value app/between)" next 'and has changed nothing'
done_testing
