# servers.sh - real servers for tests: on free ports of the loopback, in a temporary folder, ended by
# their process id. Sourced by bash after `set -u`; the caller sets $dir to an existing folder.
#
#   redis_start NAME [OPTION...]   starts redis-server with the options, waits until it answers
#   redis_stop NAME [SIGNAL]       TERM by default; waits until it is gone
#   redis_again NAME               the same server once more, same port, same folder
#   port NAME, pid NAME            what it got
#   rcli NAME ARG...               redis-cli to that server
#   servers_stop                   all of them; called at exit by whoever set $dir up
# shellcheck shell=bash disable=SC2034,SC2154 # for the callers; $dir is theirs

declare -A server_port server_pid server_options

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port() { echo "${server_port[$1]}"; }
pid() { echo "${server_pid[$1]}"; }
rcli() {
    local name=$1
    shift
    redis-cli -h 127.0.0.1 -p "${server_port[$name]}" "$@"
}

redis_start() {
    local name=$1 try
    shift
    for try in 1 2 3 4 5; do
        server_port[$name]=$(free_port)
        server_options[$name]=
        [ $# -eq 0 ] || server_options[$name]=$(printf '%q ' "$@")
        redis_again "$name" && return 0
    done
    echo "Bail out! redis-server $name did not start ($try tries): $(tail -n 3 "$dir/$name/log")"
    exit 1
}

# redis_again NAME : $server_wrap, if set, is a command put in front (faketime, for one)
redis_again() {
    local name=$1 waited=0
    mkdir -p "$dir/$name"
    # shellcheck disable=SC2086 # options and wrapper are lists of quoted words
    eval "exec ${server_wrap-} redis-server --port ${server_port[$name]} --bind 127.0.0.1 \
        --dir '$dir/$name' --logfile '$dir/$name/log' --save \"''\" --daemonize no \
        --enable-debug-command yes ${server_options[$name]}" >/dev/null 2>&1 &
    server_pid[$name]=$!
    while ! answers "$name"; do
        kill -0 "${server_pid[$name]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 300 ] || return 1
        sleep 0.05
    done
}

# Anything but silence will do: a password may be wanted, data may be loading.
# shellcheck disable=SC2086 # options
answers() { [ -n "$(rcli "$1" ${server_cli-} ping 2>/dev/null)" ]; }

redis_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    kill -CONT "$id" 2>/dev/null
    kill -"${2-TERM}" "$id" 2>/dev/null
    wait "$id" 2>/dev/null
    unset "server_pid[$1]"
}

servers_stop() {
    local name
    for name in "${!server_pid[@]}"; do
        redis_stop "$name" KILL
    done
}

# proxy_start NAME SERVER : a proxy in front of that server; port NAME is where it listens
# proxy NAME COMMAND...   : see proxy.py; the answer is in $proxied
declare -A proxy_in proxy_out
proxied=

proxy_start() {
    local in out
    mkfifo "$dir/$1.in" "$dir/$1.out"
    python3 "$(dirname "${BASH_SOURCE[0]}")/proxy.py" "$(port "$2")" <"$dir/$1.in" >"$dir/$1.out" &
    server_pid[$1]=$!
    disown $!
    exec {in}>"$dir/$1.in" {out}<"$dir/$1.out"
    proxy_in[$1]=$in
    proxy_out[$1]=$out
    read -r "server_port[$1]" <&"$out"
}

proxy() {
    local name=$1
    shift
    echo "$*" >&"${proxy_in[$name]}"
    read -r -t 10 proxied <&"${proxy_out[$name]}"
}
