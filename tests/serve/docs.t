#!/bin/bash
# docs.t - docs/serve.md: its curl lines and its program are run, and answer what the page says; what it says of metrics is so.
# run: once
set -u
# shellcheck source=tests/support/stage.sh
. "$(dirname "$0")/../support/stage.sh"
command -v curl >/dev/null || skip_all 'curl is not installed'
page=$root/docs/serve.md
# shellcheck source=tests/serve/http.sh
. "$(dirname "$0")/http.sh"
serve_start --store "file:$dir/store" --watch nightly

# $dir/N.sh or N.python for each block marked "test", N.expect for what it answers, N.how for how that is meant.
awk -v dir="$dir" '
/^<!-- test/ { n++; kind = $3 == "python" ? "python" : "sh"; part = kind; next }
/^<!-- expect/ { how = $3 == "-->" ? "json" : $3; print how >(dir "/" n ".how"); part = "expect"; next }
/^```/ { open = !open && part != ""; if (!open) part = ""; next }
/^./ && !open && part != "" { part = "" }
open { print >(dir "/" n "." part) }
END { print n >(dir "/count") }' "$page"
sed -i "s|/run/holdfast/sock|$sock|" "$dir"/*.sh "$dir"/*.python
above "$(cat "$dir/count")" 6 'the page has examples'

# One shell for all of them: what one sets the next ones use.
for n in $(seq "$(cat "$dir/count")"); do
    if [ -e "$dir/$n.sh" ]; then
        printf '{ . %q; } >%q 2>%q\n' "$dir/$n.sh" "$dir/$n.out" "$dir/$n.err"
    else
        printf 'python3 %q >%q 2>%q\n' "$dir/$n.python" "$dir/$n.out" "$dir/$n.err"
    fi
done >"$dir/all"
timeout 120 bash -u "$dir/all"
is "$?" 0 'they run'
is "$(cat "$dir"/[0-9]*.err)" '' 'without a word of complaint'

# The names and kinds of an object's members, in their order.
shape() { jq -c 'to_entries | map("\(.key) \(.value | type)")'; }
for n in $(seq "$(cat "$dir/count")"); do
    what="example $n: $(grep -m 1 . "$dir/$n.sh" 2>/dev/null | cut -c 1-40)"
    case $(cat "$dir/$n.how" 2>/dev/null) in
    json) is "$(shape <"$dir/$n.out")" "$(shape <"$dir/$n.expect")" "$what" ;;
    line) is "$(tail -n 1 "$dir/$n.out" | shape)" "$(shape <"$dir/$n.expect")" "$what" ;;
    *) ok "$([ -s "$dir/$n.out" ]; echo $?)" "$what" ;;
    esac
done
like "$(cat "$dir"/[0-9]*.out | grep writing)" 'writing with token [0-9]*' 'the program works'

# Every figure of the table is one of the server's, and the other way round.
get metrics | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' | sort >"$dir/told"
grep '^| `holdfast_' "$page" | cut -d '|' -f 2 | grep -o 'holdfast_[a-z_]*' | sort -u >"$dir/known"
is "$(diff "$dir/told" "$dir/known")" '' 'the table of metrics is complete'
done_testing
