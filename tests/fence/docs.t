#!/bin/bash
# The worked examples of docs/fencing.md: each block marked "test" is run, and must print what the page
# says after it. (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
page=$root/docs/fencing.md

# The programs that the page calls, pointed at the test's own servers.
mkdir "$dir/bin"
ln -s "$hf" "$dir/bin/holdfast"
wrap() { # NAME COMMAND...
    local name=$1
    shift
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$dir/bin/$name"
    chmod +x "$dir/bin/$name"
}
wrap psql "$(command -v psql)" -h "$SQL_DIR/pg" -U owner -d postgres -X
export DB="postgres://owner@/postgres?host=$SQL_DIR/pg"
wrap mariadb "$(command -v mariadb)" --no-defaults "--socket=$SQL_DIR/maria/sock" -u root
if [ -x "$(command -v redis-server)" ] && [ -f "$(dirname "$hf")/stores/redis.so" ]; then
    # shellcheck source=tests/fence/redis.sh
    . "$root/tests/fence/redis.sh"
    redis_begin
    trap 'redis_end; sql_end; cleanup' EXIT
    wrap redis-cli "$(command -v redis-cli)" -s "$REDIS_SOCKET"
    export URL=$REDIS_URL
fi

# examples: writes $dir/N.kind, $dir/N.code and $dir/N.expect for each block
awk -v dir="$dir" '
/^<!-- test: / { n++; kind = $3; print kind >(dir "/" n ".kind"); close(dir "/" n ".kind"); part = "code"; next }
/^<!-- expect -->/ { part = "expect"; next }
/^```/ { open = !open && part != ""; if (!open) part = ""; next }
open { print >(dir "/" n "." part) }
END { print n >(dir "/count") }' "$page"

for n in $(seq "$(cat "$dir/count")"); do
    kind=$(cat "$dir/$n.kind")
    mkdir -p "$dir/work"
    case $kind in
    redis) if [ -z "${URL:-}" ]; then ok 0 "example $n: $kind # SKIP the redis plugin is not built"; continue; fi ;;
    esac
    if [ "$kind" = c ]; then
        cp "$dir/$n.code" "$dir/example.c"
        ${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$root/include" "$dir/example.c" \
            "$(dirname "$hf")/libholdfast.a" -pthread -o "$dir/example" 2>"$dir/got" &&
            "$dir/example" >"$dir/got" 2>&1
    else
        (cd "$dir/work" && PATH=$dir/bin:$PATH bash -u "$dir/$n.code") >"$dir/got" 2>"$dir/err"
    fi
    is "$(cat "$dir/got")" "$(cat "$dir/$n.expect")" "example $n: $kind"
    [ ! -s "$dir/err" ] || diag "$(cat "$dir/err")"
done
[ "$(cat "$dir/count")" -ge 6 ]
ok $? 'the page has examples'

# The words of the page that are promises of the program.
# shellcheck disable=SC2013 # they are words
for word in $(grep -o 'holdfast fence [a-z]*' "$page" | awk '{ print $3 }' | sort -u); do
    "$hf" fence "$word" --help >/dev/null
    ok $? "holdfast fence $word is there"
done
grep -q 'stroke-dasharray' "$root/docs/trap.svg"
ok $? 'the picture is there'
done_testing
