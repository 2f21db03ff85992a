#!/bin/bash
# Fenced keys in a real Redis: the command, the script, a server that is killed.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/fence/redis.sh
. "$(dirname "$0")/../fence/redis.sh"
unset HOLDFAST_STORE
if [ ! -f "$(dirname "$hf")/stores/redis.so" ]; then
    echo '1..0 # SKIP the redis plugin is not built'
    exit 0
fi
redis_begin --appendonly yes --appendfsync always || { echo 'Bail out! no redis-server'; exit 1; }
trap 'redis_end; cleanup' EXIT
cli() { redis-cli -s "$REDIS_SOCKET" "$@"; }
put() { # TEXT ARGUMENT... : fence set
    local text=$1
    shift
    printf '%s' "$text" | "$hf" fence set "$REDIS_URL" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
    err=$(cat "$dir/err")
}

put one k --token 34
is "$rc$(cli get k)" 0one 'the first token is admitted'
put two k --token 34
is "$rc$(cli get k)" 0two 'an equal one too'
put three k --token 33
is "$rc$(cli get k)" 65two 'a lower one: exit 65, and nothing has changed'
like "$err" '^holdfast: token 33 is stale: 34 was admitted at 20[0-9-]*T[0-9:]*Z to k$' 'one sentence'
put four k --token 35
is "$rc$(cli get k)" 0four 'a higher one is admitted'
put five k
is "$rc" 64 'no token'
HOLDFAST_TOKEN=36 put six k
is "$rc$(cli get k)" 0six 'the token of the environment'
put big b --token 9007199254740993
put low b --token 9007199254740992
is "$rc$(cli get b)" 65big '2^53 + 1 and 2^53 are told apart'
put biggest b --token 9223372036854775807
put low b --token 9223372036854775806
is "$rc$(cli get b)" 65biggest 'and so are the largest two'
put low b --token 9223372036854775808
is "$rc" 64 '2^63 is no token'
put long l --token 100
put short l --token 99
is "$rc" 65 'a shorter number is a lower one'
printf 'a\0b\r\nc' | "$hf" fence set "$REDIS_URL" bytes --token 5
is "$(cli --raw get bytes | od -An -c | tr -d ' \n')" 'a\0b\r\nc\n' 'any bytes'
put '' empty --token 5
is "$rc$(cli exists empty)" 01 'an empty value'
put soon ttl --token 5 --ttl 30s
[ "$(cli pttl ttl)" -gt 20000 ] && [ "$(cli pttl 'holdfast:{ttl}:fence')" = -1 ]
ok $? 'a key can expire, its mark does not'

run "$hf" fence del "$REDIS_URL" k --token 35
is "$rc$(cli get k)" 65six 'a stale delete is refused'
run "$hf" fence del "$REDIS_URL" k --token 37
is "$rc$(cli exists k)" 00 'a good one deletes'
put late k --token 36
is "$rc$(cli exists k)" 650 'and the mark outlives the key'
run "$hf" fence enter "$REDIS_URL" k --token 40
put late k --token 39
is "$rc" 65 'enter raises the mark'

put a i --token 5 --issuer redis://a
put b i --token 6 --issuer redis://b
is "$rc$(cli get i)" 64a 'a token of another store is refused'
like "$err" 'redis://b.*redis://a.*fence reset' 'with the remedy'
put c i --token 6
is "$rc$(cli get i)" 0c 'an issuer that is not said fits'
put d i --token 6 --issuer redis://a
is "$rc$(cli get i)" 0d 'and the first is remembered'
run "$hf" fence reset "$REDIS_URL" i
is "$rc" 64 'a reset needs a reason'
run "$hf" fence reset "$REDIS_URL" i --reason 'moved to b' --issuer redis://b
put e i --token 1 --issuer redis://b
is "$rc$(cli get i)" 0e 'after it the new tokens count'
like "$(cli lrange 'holdfast:{i}:fence:resets' 0 -1)" 'reset 6 of redis://a to 0 of redis://b: moved to b' 'and it is on record'
put x '{tag}k' --token 5
is "$rc$(cli hget 'holdfast:{tag}:{tag}k:fence' token)" 05 'a key with a tag of its own'
put x 'holdfast:{x}:t' --token 5
is "$rc" 64 'a key of holdfast is refused'
cli lpush list x >/dev/null
put x list --token 5
is "$rc" 0 'a key of another type is replaced, as SET does'
HOLDFAST_TRACE=1 put x k --token 41
like "$err" 'fence +k +HF_OK' 'the call can be traced'
HOLDFAST_TRACE=1 put x $'a\nb\033[1mk' --token 41
like "$err" 'fence +a.b.\[1mk +HF_OK' 'whatever is in the name of a key'
unlike "$err" $'\033' 'a trace is plain text'

# ---- the script, as other clients call it ----
sha=$("$hf" fence script | cli -x script load)
call() { cli evalsha "$sha" 2 s 'holdfast:{s}:fence' "$@" 2>&1; }
is "$(call set 34 '' v 0)" OK 'the script sets'
is "$(call set 34 '' v)" OK 'without a ttl too'
like "$(call set 33 '' w 0)" '^(ERR )?STALE 34 [0-9]+' 'and refuses'
for bad in 0 -1 034 1e3 '' x 34.0 9223372036854775808 99999999999999999999; do
    like "$(call set "$bad" '' w 0)" 'BADTOKEN' "'$bad' is no token"
done
is "$(cli get s)" v 'none of them wrote'
for op in SET sett ''; do
    like "$(call "$op" 34 '' w 0)" 'BADOP' "'$op' is nothing that it does"
    like "$(call "$op" 50 '' w 0)" 'BADOP' 'with a higher token neither'
done
is "$(cli hget 'holdfast:{s}:fence' token)" 34 'and the mark was not raised'
is "$(call enter 34 '')" OK 'the script enters'
cli replicaof 127.0.0.1 1 >/dev/null
like "$(call enter 34 '')" 'READONLY' 'but not at a replica, whose mark may be an old one'
cli replicaof no one >/dev/null

# ---- one mark per key, whoever names it ----
put tagged '{42}:total' --token 50
for mark in 'holdfast:{{42}:total}:fence' 'holdfast:{42}:fence' 'holdfast:{s}:fence' other; do
    like "$(cli evalsha "$sha" 2 '{42}:total' "$mark" set 49 '' late 0 2>&1)" BADMARK "$mark is not the mark of a key with a tag"
done
like "$(cli evalsha "$sha" 2 '{42}:total' 'holdfast:{42}:{42}:total:fence' set 49 '' late 0 2>&1)" 'STALE 50' 'but the one that the command uses'
is "$(cli get '{42}:total')" tagged 'and nothing was written past it'
for key in '{}x' 'a{}b{c}' 'a{b' '{a}{b}' 'x{y}z'; do
    put v "$key" --token 50
    [ "$rc" = 0 ] || continue # a stray brace is refused by the command
    mark=$(cli --raw keys 'holdfast:*fence' | grep -F "$key")
    is "$(cli evalsha "$sha" 2 "$key" "$mark" set 51 '' w 0 2>&1)" OK "command and script agree on the mark of $key"
done
run "$hf" fence reset "$REDIS_URL" zero --reason test
for issuer in '' redis://a; do
    like "$(cli evalsha "$sha" 2 zero 'holdfast:{zero}:fence' set 0 "$issuer" v 0 2>&1)" BADTOKEN "0 is no token after a reset either, of '$issuer'"
done

# ---- the server is killed: with its log on disk, mark and data come back together ----
put before crash --token 50
kill -KILL "$REDIS_PID"
{ wait "$REDIS_PID"; } 2>/dev/null
redis-server --port 0 --unixsocket "$REDIS_SOCKET" --dir "$REDIS_DIR" --save '' --appendonly yes \
    --logfile "$REDIS_DIR/log" >/dev/null 2>&1 &
REDIS_PID=$!
within 20 cli ping >/dev/null
within 20 cli get crash >/dev/null
sha=$("$hf" fence script | cli -x script load)
like "$(cli evalsha "$sha" 2 crash 'holdfast:{crash}:fence' set 49 '' late 0 2>&1)" 'STALE 50' 'after a crash a stale token is still stale'
is "$(cli get crash)" before 'and the value is the last one'
run "$hf" fence del redis://127.0.0.1:1 k --token 5
is "$rc" 69 'a server that is not there'
done_testing
