# redis.sh - a Redis of the test's own, on a Unix socket and a free loopback port. Source it.
# shellcheck shell=bash
redis_begin() { # [option...]
    REDIS_DIR=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-redis-XXXXXX") || exit 1
    REDIS_SOCKET=$REDIS_DIR/sock
    local port
    for _ in $(seq 20); do
        port=$("${BASH_SOURCE[0]%/*}/../support/free_ports.py" 1)
        redis-server --port "$port" --bind 127.0.0.1 --unixsocket "$REDIS_SOCKET" --dir "$REDIS_DIR" \
            --save '' --logfile "$REDIS_DIR/log" "$@" >/dev/null 2>&1 &
        REDIS_PID=$!
        for _ in $(seq 100); do
            if redis-cli -s "$REDIS_SOCKET" ping >/dev/null 2>&1; then
                # shellcheck disable=SC2034 # for the tests
                REDIS_URL=redis://127.0.0.1:$port
                return 0
            fi
            kill -0 "$REDIS_PID" 2>/dev/null || break
            sleep 0.05
        done
    done
    return 1
}

redis_end() {
    kill -KILL "$REDIS_PID" 2>/dev/null
    { wait "$REDIS_PID"; } 2>/dev/null
    rm -rf "$REDIS_DIR"
}
