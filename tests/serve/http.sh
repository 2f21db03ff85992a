# http.sh - a server of HTTP for a test: sourced by bash, after stage.sh or the lib.sh of a store.
#
#   serve_start OPTION...   holdfast serve on $sock and with these options; waits until it is alive
#   serve_credential NAME RIGHT...  a line of $dir/tokens; its secret is in $dir/NAME.secret
#   get PATH                what it answers, through $sock
#   post WHAT JSON          likewise
#   new_owner               prints one
# shellcheck shell=bash disable=SC2154 # stage.sh sets them
sock=$dir/sock

serve_start() {
    "$hf" serve --listen "unix:$sock" "$@" 2>>"$dir/serve.err" &
    server_pid[serve]=$!
    eventually 20 get healthz >/dev/null || {
        echo "Bail out! holdfast serve does not start: $(cat "$dir/serve.err")"
        exit 1
    }
}

# A store's lib.sh has one that does the same.
declare -F server_stop >/dev/null || server_stop() { # NAME [SIGNAL]
    [ -n "${server_pid[$1]-}" ] || return 0
    kill -CONT "${server_pid[$1]}" 2>/dev/null
    kill -"${2-TERM}" "${server_pid[$1]}" 2>/dev/null
    wait "${server_pid[$1]}" 2>/dev/null
    unset "server_pid[$1]"
}

serve_credential() {
    local name=$1
    shift
    (
        umask 077
        "$hf" serve --new-token "$name" >"$dir/$name.new"
        head -n 1 "$dir/$name.new" | tr -d '\n' >"$dir/$name.secret"
        sed -n "s|^\($name [0-9a-f]*\) .*|\1 $*|p" "$dir/$name.new" >>"$dir/tokens"
    )
}

get() { curl -sS -m 30 --unix-socket "$sock" "http://localhost/$1" 2>/dev/null; }
post() {
    curl -sS -m 60 --unix-socket "$sock" -H 'Content-Type: application/json' --data @- "http://localhost/v1/$1" <<<"$2" 2>/dev/null
}
new_owner() { od -An -tx1 -N16 /dev/urandom | tr -d ' \n'; }
