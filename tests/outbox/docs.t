#!/bin/bash
# The worked examples of docs/outbox.md: each is run, and must print what the page says after it; and nobody is
# promised more than can be kept.
# (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

mkdir "$dir/bin" "$dir/work"
ln -s "$hf" "$dir/bin/holdfast"
wrap() { # NAME COMMAND... : points it at the test's own servers
    local name=$1
    shift
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$dir/bin/$name"
    chmod +x "$dir/bin/$name"
}
wrap psql env PGOPTIONS=--client_min_messages=warning "$(command -v psql)" -h "$SQL_DIR/pg" -U owner -d postgres -X
wrap mariadb "$(command -v mariadb)" --no-defaults "--socket=$SQL_DIR/maria/sock" -u root
export DB="postgres://owner@/postgres?host=$SQL_DIR/pg" MARIA="mariadb://root@/app?socket=$SQL_DIR/maria/sock"
export HOLDFAST_STORE=file:$dir/store

# One after the other, as one reads them.
awk -v dir="$dir" '
/^<!-- test: / { n++; print $3 >(dir "/" n ".kind"); close(dir "/" n ".kind"); part = "code"; next }
/^<!-- expect -->/ { part = "expect"; next }
/^```/ { open = !open && part != ""; if (!open) part = ""; next }
open { print >(dir "/" n "." part) }
END { print n >(dir "/count") }' "$root/docs/outbox.md"
for n in $(seq "$(cat "$dir/count")"); do
    (cd "$dir/work" && PATH=$dir/bin:$PATH bash -u "$dir/$n.code") >"$dir/got" 2>"$dir/err"
    is "$(cat "$dir/got")" "$(cat "$dir/$n.expect")" "example $n: $(cat "$dir/$n.kind")"
    [ ! -s "$dir/err" ] || diag "$(cat "$dir/err")"
done
[ "$(cat "$dir/count")" -ge 6 ]
ok $? 'the page has examples'

# Also with a line break, a hyphen or a comment's edge between the words.
promised() { grep -rlizP 'exactly(\\?-|\\~|["*_\s/#;])+once' "$@"; }
printf 'It is sent exactly\n * once.' >"$dir/promise"
is "$(promised "$dir/promise")" "$dir/promise" 'a promise is found'
is "$(cd "$root" && promised README.md ARCHITECTURE.md docs man src include)" '' \
    'nobody is promised "exactly once", in no page and no help text'
done_testing
