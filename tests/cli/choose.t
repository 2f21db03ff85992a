#!/bin/bash
# docs/choose.md: its examples do what they say, its man page is the same page, and it promises nobody too much.
# run: once, run: first
set -u
. "$(dirname "$0")/cmd.sh"
page=$root/docs/choose.md

mkdir "$dir/bin" "$dir/work"
ln -s "$hf" "$dir/bin/holdfast"
awk -v dir="$dir" '
/^<!-- test: / { name = $3; part = "code"; next }
/^<!-- expect -->/ { part = "expect"; next }
/^```/ { open = !open && part != ""; if (!open) part = ""; next }
open { print >(dir "/" name "." part) }' "$page"
for name in same two sent; do
    (cd "$dir/work" && PATH=$dir/bin:$PATH bash -u "$dir/$name.code") >"$dir/got" 2>"$dir/err"
    is "$(cat "$dir/got")" "$(cat "$dir/$name.expect")" "the example \"$name\""
    [ ! -s "$dir/err" ] || diag "$(cat "$dir/err")"
done
# Without the fence the second example would end otherwise.
(cd "$dir/work" && sed 's/holdfast fence write report.txt --token "[^"]*"/cat >report.txt/' "$dir/two.code" |
    PATH=$dir/bin:$PATH bash -u) >"$dir/got" 2>&1
is "$(cat "$dir/got")" 'from the first, late' 'it is the fence that refuses'

# Nor does the third one pass for nothing: a receiver that does not look at the key sends two mails.
(cd "$dir/work" && rm -f mail.db states && sed "s/^\(INSERT INTO mail SELECT '[^']*'\) FROM .*/\1;/" "$dir/sent.code" |
    PATH=$dir/bin:$PATH bash -u) >"$dir/got" 2>"$dir/err"
is "$(tail -n 2 "$dir/got" | head -n 1)" 2 'it is the key that keeps it to one mail'

is "$("$root/scripts/choose_page.sh" | cmp - "$root/man/holdfast-choose.7" 2>&1)" '' \
    'man holdfast-choose is the same page (scripts/choose_page.sh makes it)'
is "$(grep -ic 'exactly[- ]once' "$page")" 0 'nobody is promised "exactly once"'
is "$(grep -c '^|---' "$page")" 1 'one table'
is "$(awk '/^## The picture/ { on = 1 } /^## / && !/picture/ { on = 0 } on && /^```/' "$page" | wc -l)" 2 'one picture'
check 'the README links it at its top' test -n "$(head -n 12 "$root/README.md" | grep 'docs/choose.md')"
missing=
for link in $(grep -o '](\([a-z]*\.md\))' "$page" | tr -d '()]'); do
    [ -e "$root/docs/$link" ] || missing="$missing $link"
done
is "$missing" '' 'its links lead somewhere'
# shellcheck disable=SC2013 # they are words
for command in $(grep -o 'holdfast [a-z]*' "$page" | sort -u | cut -d ' ' -f 2); do
    check "there is a command $command" holdfast help "$command"
done
done_testing
