#!/bin/bash
# The API over the embedded store: what each request answers, and with which code.
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'

serve_start --store "file:$dir/store" --max-ttl 1m

# call METHOD PATH [JSON [HEADER...]] : the body in $answer, the code in $code, the head in $dir/head
call() {
    local method=$1 path=$2 body=${3-} more=()
    shift $(($# < 3 ? $# : 3))
    for header in "$@"; do more+=(-H "$header"); done
    [ -z "$body" ] || more+=(-H 'Content-Type: application/json' --data "$body")
    answer=$(curl -sS -N -m 30 --unix-socket "$sock" -D "$dir/head" -X "$method" "${more[@]}" "http://localhost$path")
    code=$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$dir/head")
}
field() { jq -r ".$1" <<<"$answer"; }
head_of() { sed -n "s/\r\$//; s/^$1: //Ip" "$dir/head"; }

a=$(new_owner)
call POST /v1/acquire "{\"name\": \"job\", \"owner\": \"$a\", \"ttl_ms\": 30000, \"label\": \"me\", \"surprise\": true}"
is "$code" 200 'a free lock is granted'
is "$(head_of Holdfast-Status)" HF_OK 'and the head says so'
is "$(head_of Cache-Control)" no-store 'it must not be kept'
is "$(head_of X-Content-Type-Options)" nosniff 'nor guessed at'
is "$(field owner)" "$a" 'to the owner that asked'
is "$(field token | tr -d 0-9)" '' 'with a token, a string of digits'
is "$(jq -r '.token | type' <<<"$answer")" string 'as a string'
is "$(field ttl_ms)" 30000 'for its ttl'
is "$(field after_ms)" 0 'at once'
is "$(field valid_ms)" 29698 'valid for the ttl less drift'
token=$(field token)

call POST /v1/acquire "{\"name\": \"job\", \"owner\": \"$a\", \"ttl_ms\": 30000}"
is "$code $(field status)" '409 HF_UNKNOWN' 'an owner is one request: the POST must not be repeated'
call POST /v1/acquire "{\"name\": \"job\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 30000}"
is "$code $(field status) $(head_of Holdfast-Status)" '423 HF_BUSY HF_BUSY' 'a lock that is held is busy'
is "$(head_of Content-Type)" application/problem+json 'which is a problem'
is "$(field token) $(field waiters)" "$token 0" 'and it tells the present token, and who waits'
like "$(field holder)" "$(id -un)/me" 'and the holder, with the user of the socket before the label'
above "$(field remaining_ms)" 20000 'and what remains'

call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$token\", \"ttl_ms\": 20000}"
is "$code $(field ttl_ms) $(field valid_ms)" '200 20000 19798' 'a renewal says how long it is valid'
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$token\", \"ttl_ms\": 0}"
is "$code $(field ttl_ms)" '200 20000' 'a look extends nothing'
[ "$(field valid_ms)" -le 19798 ]
ok $? 'and tells what is left'
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$((token - 1))\", \"ttl_ms\": 20000}"
is "$code $(field status)" '410 HF_LOST' 'another token of the same owner is lost'
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$(new_owner)\", \"token\": \"$token\", \"ttl_ms\": 20000}"
is "$code $(field loss)" '410 taken' 'another owner too, and it hears why'
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"ttl_ms\": 20000}"
is "$code" 400 'a renewal needs its token'
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$token\", \"ttl_ms\": 60001}"
is "$code" 400 'and no ttl above --max-ttl'
like "$(field detail)" '*1m*' 'which is told'
"$hf" --store "file:$dir/store" break job --token "$token" --reason 'too long' >/dev/null 2>&1
call POST /v1/renew "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$token\", \"ttl_ms\": 20000}"
is "$code $(field loss) $(field reason)" '410 broken too long' 'what was broken is not renewed, and hears why'

call GET "/v1/lock?name=job"
is "$(field 'locks[0].name') $(field 'locks[0].token') $(field 'locks[0].detached')" "job $token true" 'one lock'
like "$(field as_of_ms)" '1[0-9]*' 'as of when'
"$hf" --store "file:$dir/store" list --json >"$dir/list"
is "$(jq -c '.locks[0] | keys' <<<"$answer")" "$(jq -c '.[0] | keys' "$dir/list")" 'with the fields of list --json'
call GET "/v1/lock?name=none"
is "$code $(jq -c .locks <<<"$answer")" '200 []' 'a free lock is no row'

call POST /v1/release "{\"name\": \"job\", \"owner\": \"$a\", \"token\": \"$token\"}"
is "$code $answer" '200 {}' 'a release'
call POST /v1/release "{\"name\": \"job\", \"owner\": \"$a\"}"
is "$code $(field status)" '410 HF_LOST' 'a second one finds nothing'
b=$(new_owner)
call POST /v1/acquire "{\"name\": \"räksmörgås 'x'\", \"owner\": \"$b\", \"ttl_ms\": 30000}"
call GET "/v1/locks?prefix=r%C3%A4k"
is "$(field 'locks[0].name') $(field more)" "räksmörgås 'x' 0" 'names are UTF-8, in bodies and queries'
call POST /v1/release "{\"name\": \"räksmörgås 'x'\", \"owner\": \"$b\"}"
is "$code" 200 'a release without a token'
late=$(new_owner)
call POST /v1/release "{\"name\": \"job\", \"owner\": \"$late\"}"
call POST /v1/acquire "{\"name\": \"job\", \"owner\": \"$late\", \"ttl_ms\": 30000}"
is "$code" 409 'an acquire that comes behind its own release takes nothing'

for i in 1 2 3; do
    call POST /v1/acquire "{\"name\": \"many/$i\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 30000}"
done
sleep 1.1 # longer than a listing is good
call GET '/v1/locks?prefix=many/&limit=2'
is "$code $(jq '.locks | length' <<<"$answer") $(field more)" '200 2 1' 'a limit, and how many there are more'
call GET '/v1/store'
is "$(field scheme) $(field max_ttl_ms) $(field version)" "file 60000 $("$hf" version | cut -d ' ' -f 2)" 'the store'
like "$(field identity)" 'id:file:*' 'and who it is'

call POST /v1/acquire "{\"name\": \"many/1\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 30000, \"wait_ms\": 300}" \
    'Accept: application/x-ndjson'
is "$code $(head_of Holdfast-Status) $(field status)" '200 waiting HF_BUSY' 'a stream says 200 at once, and the verdict in its last line'
is "$(head_of X-Accel-Buffering)" no 'and asks not to be buffered'
c=$(new_owner)
call POST /v1/acquire "{\"name\": \"streamed\", \"owner\": \"$c\", \"ttl_ms\": 30000, \"wait_ms\": 300}" \
    'Accept: application/x-ndjson'
is "$(field status) $(field owner)" "HF_OK $c" 'a stream that was granted'

server_stop serve
is "$(grep -cE "$a|$b|$c|$late" "$dir/serve.err")" 0 'no owner is in what the server said'
done_testing
