#!/bin/bash
# The examples of docs/slots.md: each is run, and must print what the page says after it. And the picture of
# that page: votes that stay below the limit on every node, and more majorities than the limit.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
page=$PWD/docs/slots.md
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not installed"; exit 0; }

mkdir "$dir/bin"
ln -s "$hf" "$dir/bin/holdfast"
awk -v dir="$dir" '
/^<!-- test: / { n++; print $3 >(dir "/" n ".kind"); close(dir "/" n ".kind"); part = "code"; next }
/^<!-- expect -->/ { part = "expect"; next }
/^```/ { open = !open && part != ""; if (!open) part = ""; next }
open { print >(dir "/" n "." part) }
END { print n >(dir "/count") }' "$page"
for n in $(seq "$(cat "$dir/count")"); do
    mkdir "$dir/work.$n"
    (cd "$dir/work.$n" && PATH=$dir/bin:$PATH HOLDFAST_DIR=$dir/store.$n timeout 60 bash -u "$dir/$n.code") \
        >"$dir/got" 2>"$dir/err"
    is "$(cat "$dir/got")" "$(cat "$dir/$n.expect")" "example $n: $(cat "$dir/$n.kind")"
    [ ! -s "$dir/err" ] || sed 's/^/#   /' "$dir/err"
done
is "$(cat "$dir/count")" 4 'the page has four patterns'

# the picture
is "$(awk '/^    holder [A-Z]/ { votes = gsub(/ x/, " x"); if (votes >= 3) in_++ } END { print in_ }' "$page")" 3 \
    'in the picture three have a majority of five'
is "$(awk '/^    holder [A-Z]/ { for (i = 3; i <= 7; i++) if ($i == "x" && ++votes[i] > 2) over++ }
    END { print over + 0 }' "$page")" 0 'and no node has admitted more than two'
done_testing
