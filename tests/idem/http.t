#!/bin/bash
# docs/http.md: each of its functions, copied from the page into a small service, keeps the page's contract;
# and springs the trap: a worker that was frozen past its lease sends its POST late.
# (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
page=$root/docs/http.md
kept=$root/build/http # what takes long to make: Go's cache, npm's packages
PGPORT=$("$root/tests/support/free_ports.py" 1)
export PGPORT
pg_start listen_addresses=127.0.0.1 port="$PGPORT" || { echo "Bail out! no database"; exit 1; }
"$hf" idem sql --dialect postgres | pg
export DSN="host=127.0.0.1 port=$PGPORT user=owner dbname=postgres sslmode=disable"
export DSN_URL="postgres://owner@127.0.0.1:$PGPORT/postgres"
export DSN_JDBC="jdbc:postgresql://127.0.0.1:$PGPORT/postgres?user=owner"
pg <<<"CREATE TABLE orders (body text); CREATE TABLE account (v int); INSERT INTO account VALUES (0);
    CREATE TABLE plain (v int); INSERT INTO plain VALUES (0);"
fence sql --dialect postgres --table account --resource account | pg

block() { # LANGUAGE : its code on the page
    awk -v head="<!-- test: $1 -->" '$0 == head { mine = 1; next } mine && /^```/ { if (open) exit; open = 1; next }
        open' "$page"
}

# Lines of each function of a language, the longest: from its head to the brace, or the last line, of the
# same depth.
longest() { # LANGUAGE
    block "$1" | awk -v lang="$1" '
        /^(def|async function|func|static [A-Za-z]+ [a-z][A-Za-z]*\()/ { n = 1; next }
        n { n++; if (n > max && NF) max = n }
        /^}/ { n = 0 }
        END { print max }'
}

build_server() { # LANGUAGE : a command that starts it, in $server
    mkdir "$dir/$1"
    case $1 in
    python)
        { block python; cat "$root/tests/idem/http/server.py"; } >"$dir/python/server.py"
        server=(/usr/bin/python3 "$dir/python/server.py")
        ;;
    node)
        { block node; cat "$root/tests/idem/http/server.js"; } >"$dir/node/server.js"
        node_pg || return 1
        server=(env "NODE_PATH=$node_modules" node "$dir/node/server.js")
        ;;
    go)
        { cat "$root/tests/idem/http/head.go"; block go; cat "$root/tests/idem/http/server.go"; } >"$dir/go/server.go"
        (cd "$dir/go" && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$kept/go GOFLAGS=-p=2 \
            go build -o server server.go) || return 1
        server=("$dir/go/server")
        ;;
    java)
        { cat "$root/tests/idem/http/head.java"; block java; cat "$root/tests/idem/http/server.java"; } >"$dir/java/Server.java"
        javac -d "$dir/java" "$dir/java/Server.java" || return 1
        server=(java -Xmx128m -cp "$dir/java:/usr/share/java/postgresql.jar" Server)
        ;;
    esac
}

# Debian's node-pg, or the same from npm where node is not Debian's.
node_pg() {
    node_modules=/usr/share/nodejs
    [ ! -d "$node_modules/pg" ] || return 0
    node_modules=$kept/node/node_modules
    [ ! -d "$node_modules/pg" ] || return 0
    mkdir -p "$kept/node" && (cd "$kept/node" && npm install --silent --no-audit --no-fund --prefix . pg@8.8.0)
}

post() { # PATH BODY [HEADER...] : the status in $code, the body in $body, Retry-After in $again
    local path=$1 data=$2 headers=()
    shift 2
    case "$*" in *Authorization:*) ;; *) headers=(-H 'Authorization: anna') ;; esac
    for header; do headers+=(-H "$header"); done
    code=$(curl -s -m 60 -D "$dir/head" -o "$dir/body" -w '%{http_code}' "${headers[@]}" \
        --data-raw "$data" "$url$path")
    body=$(cat "$dir/body") again=$(sed -n 's/^Retry-After: \([0-9]*\).*/\1/Ip' "$dir/head")
    rm -f "$dir/body"
}

count() { pg <<<"SELECT count(*) FROM orders;"; }

contract() { # LANGUAGE
    local l=$1 before slow
    post /orders a
    is "$code" 400 "$l: no Idempotency-Key"
    post /orders a "Idempotency-Key: $(printf 'x%.0s' {1..256})"
    is "$code" 400 "$l: one of 256 bytes"
    is "$(count)" 0 "$l: nothing was done"
    post /orders a 'Idempotency-Key: 1'
    is "$code $body" '201 order 1' "$l: new"
    post /orders a 'Idempotency-Key: 1'
    is "$code $body" '201 order 1' "$l: done: the stored status and body"
    post /orders b 'Idempotency-Key: 1'
    is "$code" 422 "$l: another body: mismatch"
    post /orders a 'Idempotency-Key: 1' 'Authorization: bob'
    is "$(count)" 2 "$l: another caller's key is another key"
    post /orders boom 'Idempotency-Key: 2'
    is "$code $(count)" '500 2' "$l: an exception undoes the work"
    post /orders boom 'Idempotency-Key: 2'
    is "$code" 500 "$l: and is not replayed"
    post /orders declined 'Idempotency-Key: 3'
    post /orders declined 'Idempotency-Key: 3'
    is "$code $body" '402 the card was declined' "$l: a refusal that was finished is replayed"
    post /orders huge 'Idempotency-Key: huge'
    is "$code" 500 "$l: an answer that is too large is no mistake of the client's"
    post /orders a 'Idempotency-Key;'
    is "$code" 400 "$l: an empty key is"
    before=$(count)
    hold_up
    curl -s -m 60 -o "$dir/slow" -H 'Authorization: anna' -H 'Idempotency-Key: 4' --data-raw slow \
        "$url/orders" 8>&- &
    slow=$!
    within 30 lock_is f
    post /orders slow 'Idempotency-Key: 4'
    is "$code $again" '409 1' "$l: running: again in a second"
    exec 8>&-
    wait "$slow"
    post /orders slow 'Idempotency-Key: 4'
    is "$code $body" "201 $(cat "$dir/slow")" "$l: then it is done"
    is "$(count)" $((before + 1)) "$l: once"

    post /account 5 'Idempotency-Key: 5'
    is "$code" 428 "$l: no Fencing-Token"
    for bad in x 0 -1 1.5 9223372036854775808 18446744073709551617 99999999999999999999 '1 OR 1'; do
        post /account 5 'Idempotency-Key: 5' "Fencing-Token: $bad"
        is "$code" 400 "$l: Fencing-Token: $bad"
    done
    post /account 5 'Idempotency-Key: 5' 'Fencing-Token: 34'
    is "$code" 200 "$l: a token"
    post /account 6 'Idempotency-Key: 6' 'Fencing-Token: 33'
    is "$code" 412 "$l: a stale one"
    post /account 5 'Idempotency-Key: 5' 'Fencing-Token: 33'
    is "$code $body" '200 written' "$l: finished work hears its answer under a stale token, too"
    post /account 6 'Idempotency-Key: 6' 'Fencing-Token: 9223372036854775807'
    is "$code" 200 "$l: the refused key was free, and 2^63-1 is a token"
    pg <<<"SELECT holdfast_fence.reset('account', 'redis://b', 'test') \g /dev/null
        CALL holdfast_fence.enter_from('account', 35, 'redis://b') \g /dev/null"
    post /account 7 'Idempotency-Key: 7' 'Fencing-Token: 36'
    is "$code" 200 "$l: after a reset"
}

# A slow order waits for a lock of ours, until descriptor 8 is closed.
hold_up() {
    mkfifo "$dir/words"
    pg <"$dir/words" >/dev/null &
    exec 8>"$dir/words"
    rm "$dir/words"
    echo 'BEGIN; SELECT pg_advisory_xact_lock(4711);' >&8
    within 30 lock_is t
}

lock_is() { # t (granted) or f (waited for)
    [ "$(pg <<<"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND granted = '$1';")" = 1 ]
}

# A worker: takes the lock, waits until it may go on, and sends its POST with the token it has.
worker() { # NAME VALUE PATH
    eval "$("$hf" --store "file:$dir/locks" acquire --ttl 1s --wait 30s account)"
    touch "$dir/$1.holds"
    until [ -e "$dir/$1.go" ]; do sleep 0.05; done
    curl -s -m 60 -o "$dir/$1.body" -w '%{http_code}' -H 'Authorization: anna' -H "Idempotency-Key: trap-$1" \
        -H "Fencing-Token: $HOLDFAST_TOKEN" --data-raw "$2" "$url$3" >"$dir/$1.part"
    mv "$dir/$1.part" "$dir/$1.code"
}

springs() { # PATH : the codes of the late and the timely worker
    rm -f "$dir"/first.* "$dir"/second.*
    start worker first 33 "$1"
    local first=$pid
    within 30 test -e "$dir/first.holds"
    kill -STOP "$first"
    touch "$dir/first.go"
    start worker second 34 "$1"
    touch "$dir/second.go"
    within 30 test -e "$dir/second.code"
    kill -CONT "$first"
    within 30 test -e "$dir/first.code"
    echo "$(cat "$dir/first.code") $(cat "$dir/second.code")"
}

for language in python node go java; do
    pg <<<"TRUNCATE orders, holdfast_idem.entry; SELECT holdfast_fence.reset('account', '', 'test') \g /dev/null"
    n=$(longest "$language")
    [ "$n" -gt 5 ] && [ "$n" -le 20 ]
    ok $? "$language: at most 20 lines ($n)"
    build_server "$language" >"$dir/built" 2>&1
    ok $? "$language: the page's function is part of a service"
    [ -n "${server[0]:-}" ] || continue
    start "${server[@]}" >"$dir/$language.port" 2>"$dir/$language.err"
    service=$pid
    within 60 test -s "$dir/$language.port"
    ok $? "$language: which runs"
    url=http://127.0.0.1:$(cat "$dir/$language.port")
    contract "$language"
    pg <<<"SELECT holdfast_fence.reset('account', '', 'test') \g /dev/null"
    is "$(springs /account)" '412 200' "$language: the trap: the late POST is refused"
    is "$(pg <<<'SELECT v FROM account;')" 34 "$language: and nothing is written"
    block curl >"$dir/client.sh"
    is "$(cd "$dir" && LOGIN=anna KEY=client HOLDFAST_TOKEN=9223372036854775807 URL=$url bash -u client.sh)" 200 \
        "$language: the client of the page"
    is "$(pg <<<'SELECT v FROM account;')" 100 "$language: which writes"
    is "$(springs /unchecked)" '200 200' "$language: without the check it is not"
    is "$(pg <<<'SELECT v FROM plain;')" 33 "$language: and the late write is the last one"
    kill "$service"
    ended "$service"
    [ ! -s "$dir/built" ] || diag "$(head -20 "$dir/built")"
    server=()
done
done_testing
