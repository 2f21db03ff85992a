#!/bin/bash
# Who may do what: credentials and their file, Host, the socket's mode, addresses.
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/http.sh"

p=$(free_port)
tcp() { # CREDENTIAL PATH [JSON] : the code; the answer in $dir/body
    local more=()
    [ -z "$1" ] || more+=(-H "Authorization: Bearer $(cat "$dir/$1.secret")")
    [ $# -lt 3 ] || more+=(-H 'Content-Type: application/json' --data "$3")
    curl -sS -m 20 -o "$dir/body" -w '%{http_code}' "${more[@]}" "http://127.0.0.1:$p/$2"
}
lock() { echo "{\"name\": \"$1\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 5000}"; }
refused() { # WANTED DESCRIPTION OPTION... : the server does not start
    local wanted=$1 what=$2 got
    shift 2
    timeout 10 "$hf" serve --store "file:$dir/store" "$@" 2>"$dir/refused"
    got=$?
    is "$got" "$wanted" "$what"
}

serve_credential all look lock metrics
serve_credential looker look:app/
serve_credential locker lock:app/ lock:db/
serve_credential scraper metrics

refused 64 'tcp: needs credentials' --listen "tcp:127.0.0.1:$p"
like "$(cat "$dir/refused")" '*--tokens*' 'and the text says so'
for address in tcp:0.0.0.0:7070 'tcp:[::]:7070' tcp:192.0.2.1:7070 tcp:127.0.0.2:7070 tcp:localhost.evil:7070 unix:relative http:x; do
    refused 64 "$address is no address to listen on" --tokens "$dir/tokens" --listen "$address"
done
refused 64 'a name of bytes that are no UTF-8 is not watched' --listen "unix:$dir/x" --watch $'caf\xe9'
like "$(cat "$dir/refused")" '*--watch*UTF-8*' 'and the text says why'
refused 64 'nor is one of another machine' --tokens "$dir/tokens" --listen tcp:0.0.0.0:7070
like "$(cat "$dir/refused")" '*proxy with TLS in front*' 'and the text says what to do'
cp "$dir/tokens" "$dir/open"
chmod 0644 "$dir/open"
refused 77 'a credentials file that others can read is refused' --tokens "$dir/open" --listen "unix:$dir/x"
chmod 0602 "$dir/open"
refused 77 'and one that others can write' --tokens "$dir/open" --listen "unix:$dir/x"
chmod 0600 "$dir/open"
echo 'bad line' >>"$dir/open"
refused 64 'and one with a bad line' --tokens "$dir/open" --listen "unix:$dir/x"
like "$(cat "$dir/refused")" '*line 5*' 'whose number is told'
printf 'x %064d fly\n' 0 >"$dir/open"
refused 64 'and one with a right that there is not' --tokens "$dir/open" --listen "unix:$dir/x"

serve_start --store "file:$dir/store" --tokens "$dir/tokens" --listen "tcp:127.0.0.1:$p" --host locks.example
is "$(tcp '' v1/acquire "$(lock app/x)")" 401 'without a credential nobody is known'
is "$(tcp '' v1/locks)" 401 'nor for looking'
is "$(tcp '' metrics)" 401 'nor for the metrics'
is "$(tcp '' healthz)$(tcp '' readyz)$(tcp '' '')" 200200200 'alive, ready and the page are for everybody'
echo nonsense >"$dir/wrong.secret"
is "$(tcp wrong v1/locks)" 401 'a wrong credential is not known'
is "$(tcp all v1/acquire "$(lock app/x)") $(tcp all v1/locks) $(tcp all metrics)" '200 200 200' 'all rights'
is "$(tcp looker v1/acquire "$(lock app/y)")" 403 'who may look may not lock'
is "$(tcp looker v1/lock?name=app/x) $(tcp looker v1/locks?prefix=app/)" '200 200' 'but look, at what his prefix has'
is "$(tcp looker v1/lock?name=db/x) $(tcp looker v1/locks?prefix=ap)" '403 403' 'and at nothing else'
is "$(tcp locker v1/acquire "$(lock app/z)") $(tcp locker v1/acquire "$(lock db/z)")" '200 200' 'two prefixes'
is "$(tcp locker v1/acquire "$(lock other)") $(tcp locker v1/locks?prefix=app/)" '403 403' 'and no more'
is "$(tcp scraper metrics) $(tcp scraper v1/locks)" '200 403' 'metrics only'
is "$(tcp locker v1/store)" 200 'the store is for everybody who is known'
tcp all v1/lock?name=app/z >/dev/null
like "$(cat "$dir/body")" '*"label": "locker*' 'the name of the credential is before the label'

host() { curl -sS -m 20 -o /dev/null -w '%{http_code}' -H "Host: $1" "http://127.0.0.1:$p/healthz"; }
is "$(host localhost) $(host "localhost:$p") $(host "127.0.0.1:$p") $(host '[::1]:1')" '200 200 200 200' 'our own names'
is "$(host locks.example) $(host LOCKS.example:443)" '200 200' 'and what --host says'
is "$(host evil.example) $(host locks.example.evil) $(host '127.0.0.1.evil:80') $(host '127.0.0.1:x')" '400 400 400 400' \
    'a foreign Host is refused: a page whose name was made to lead here gets nothing'

serve_credential late look
kill -HUP "${server_pid[serve]}"
eventually 10 grep -q 'read again' "$dir/serve.err"
is "$(tcp late v1/locks)" 200 'HUP reads the credentials again'
chmod 0644 "$dir/tokens"
kill -HUP "${server_pid[serve]}"
eventually 10 grep -q 'stay as they were' "$dir/serve.err"
is "$(tcp late v1/locks)" 200 'a bad file keeps the old ones'

is "$(stat -c %a "$sock")" 660 "the socket's mode"
is "$(get v1/locks | head -c 2)" '{"' 'through the socket nobody needs a credential'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 0711 "$dir"
    other() { setpriv --reuid 65534 --regid "$1" --clear-groups curl -sS -m 10 --unix-socket "$sock" http://localhost/healthz 2>&1; }
    like "$(other 65534)" '*onnect to*' 'another user does not get through the socket'
    chgrp 65534 "$sock"
    is "$(other 65534)" '{"alive": true}' 'unless the group of the file is his'
    o=$(new_owner)
    setpriv --reuid 65534 --regid 65534 --clear-groups curl -sS -m 10 --unix-socket "$sock" -H 'Content-Type: application/json' \
        --data "{\"name\": \"theirs\", \"owner\": \"$o\", \"ttl_ms\": 9000, \"label\": \"x\"}" http://localhost/v1/acquire >/dev/null
    like "$(get 'v1/lock?name=theirs')" "*\"label\": \"$(id -un 65534)/x\"*" 'and the label says who it was'
fi
refused 69 'a second server does not take the socket of a first' --listen "unix:$sock"
server_stop serve KILL
# Two start in one moment, and the file is left over; the first one is slow to listen.
if command -v strace >/dev/null; then
    strace -f -o "$dir/trace" -e trace=listen -e inject=listen:delay_enter=700000 \
        "$hf" serve --store "file:$dir/store" --listen "unix:$sock" 2>>"$dir/serve.err" &
    server_pid[slow]=$!
    eventually 10 grep -q listen "$dir/trace"
    refused 69 'nor that of one that is about to listen' --listen "unix:$sock"
    is "$(get healthz)" '{"alive": true}' 'which has it'
    slow=$(pgrep -P "${server_pid[slow]}" | head -n 1)
    kill -KILL "$slow"
    wait "${server_pid[slow]}" 2>/dev/null
    unset 'server_pid[slow]'
fi
serve_start --store "file:$dir/store"
is "$(get healthz)" '{"alive": true}' 'one that was killed leaves no file in the way'
server_stop serve
[ ! -e "$sock" ]
ok $? 'one that ends removes it'
found=0
for credential in all looker locker scraper late; do
    [ "$(wc -c <"$dir/$credential.secret")" = 64 ] && ! grep -qf "$dir/$credential.secret" "$dir/serve.err" || found=1
done
is "$found" 0 'no secret is in what the server said'
done_testing
