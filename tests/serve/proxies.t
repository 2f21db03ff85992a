#!/bin/bash
# proxies.t - nginx and haproxy between a client and the server, and neither has patience for more than 3s: the
# conformance suite through each; a plain wait ends unknown and leaves nothing behind; a stream lives on.
# run: first
# shellcheck disable=SC2317 # functions that eventually calls by name
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$root/tests/serve/http.sh"
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || skip_all 'nginx is not installed'
haproxy=$(PATH=$PATH:/usr/sbin command -v haproxy) || skip_all 'haproxy is not installed'

redis_start a
calm a
read -r port nginx_port haproxy_port <<<"$(free_ports 3 | tr '\n' ' ')"
umask 077
new_owner >"$dir/test.secret"
echo "test $(sha256sum <"$dir/test.secret" | cut -d ' ' -f 1) look lock" >"$dir/tokens"
serve_start --store "$(url a)" --listen "tcp:127.0.0.1:$port" --tokens "$dir/tokens"
export HOLDFAST_HTTP_TOKEN_FILE=$dir/test.secret

cat >"$dir/nginx.conf" <<END
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path $dir/nginx.body;
    proxy_temp_path $dir/nginx.proxy;
    fastcgi_temp_path $dir/nginx.fastcgi;
    uwsgi_temp_path $dir/nginx.uwsgi;
    scgi_temp_path $dir/nginx.scgi;
    keepalive_timeout 3s;
    send_timeout 3s;
    client_header_timeout 3s;
    client_body_timeout 3s;
    proxy_connect_timeout 3s;
    proxy_read_timeout 3s;
    proxy_send_timeout 3s;
    server {
        listen 127.0.0.1:$nginx_port;
        location /locks/ {
            proxy_http_version 1.1;
            proxy_pass http://127.0.0.1:$port/;
        }
    }
}
END
cat >"$dir/haproxy.cfg" <<END
defaults
    mode http
    timeout connect 3s
    timeout client 3s
    timeout server 3s
    timeout http-keep-alive 3s
    timeout http-request 3s
    option abortonclose
frontend here
    bind 127.0.0.1:$haproxy_port
    http-request set-header Host 127.0.0.1:$port
    default_backend there
backend there
    server one 127.0.0.1:$port
END
"$nginx" -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.err" &
server_pid[nginx]=$!
"$haproxy" -db -f "$dir/haproxy.cfg" >"$dir/haproxy.log" 2>&1 &
server_pid[haproxy]=$!

held_by() { get "v1/lock?name=$1" | jq -r '.locks[0] | "\(.held) \(.waiters)"'; }
held_and() { [ "$(held_by job)" = "true $1" ]; }

through() { # NAME BASE-URL
    local base=$2 owner waiter out=$dir/$1.out
    ask_curl() { curl -sS -m 30 -o "$out" -w '%{http_code}' -H "Authorization: Bearer $(cat "$dir/test.secret")" "$@"; }
    alive() { [ "$(ask_curl "$base/healthz" 2>/dev/null)" = 200 ]; }
    eventually 20 alive
    ok $? "$1 is there"
    "$build/tests/conform/conform" "$base" >"$dir/$1.tap" 2>&1
    ok $? "the conformance suite through $1"
    grep -A3 '^not ok' "$dir/$1.tap" | sed 's/^/#   /'

    owner=$(new_owner) waiter=$(new_owner)
    post acquire "{\"name\": \"job\", \"owner\": \"$owner\", \"ttl_ms\": 60000}" >/dev/null
    is "$(ask_curl -H 'Content-Type: application/json' -D "$dir/$1.head" "$base/v1/acquire" \
        -d "{\"name\": \"job\", \"owner\": \"$waiter\", \"ttl_ms\": 60000, \"wait_ms\": 20000}")" 504 \
        'a plain wait of 20s is cut off'
    is "$(grep -ci '^holdfast-status' "$dir/$1.head")" 0 "and not by the server: $1 does not know how it ended"
    eventually 5 held_and 0
    ok $? 'who waited has left the queue'

    "$hf" --store "$base" run --wait 20s job -- date +%s >"$dir/$1.began" 2>"$dir/$1.err" &
    eventually 10 held_and 1
    ok $? 'one who waits by a stream is in the queue'
    sleep 7
    is "$(held_by job)" 'true 1' 'and after 7s it is still there'
    date +%s >"$dir/$1.released"
    post release "{\"name\": \"job\", \"owner\": \"$owner\"}" >/dev/null
    wait $!
    is "$?" 0 "then it has the lock: $(cat "$dir/$1.err")"
    above "$(($(cat "$dir/$1.began") + 1))" "$(cat "$dir/$1.released")" 'and not before it was free'
    is "$(held_by job)" 'null null' 'and gives it back'
}

through nginx "http://127.0.0.1:$nginx_port/locks"
through haproxy "http://127.0.0.1:$haproxy_port"
done_testing
