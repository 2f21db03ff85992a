#!/bin/bash
# languages.t - docs/languages.md: the same ten lines in five languages run, and say the same; and the bindings stay
# short.
# run: once
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
page=$root/docs/languages.md
flags=(-Wall -Wextra -Werror -I"$root/include" -I"$root/bindings/cpp")
mkdir -p "$dir/app/node_modules"
ln -s "$made/node" "$dir/app/node_modules/holdfast"
printf 'module app\n\ngo 1.19\n\nrequire holdfast v0.0.0\n\nreplace holdfast => %s\n' "$root/bindings/go" >"$dir/app/go.mod"

# program KIND : makes $dir/program from the block of that kind
program() {
    local code=$dir/app/main.$1
    awk -v kind="$1" '$0 == "```" kind { inside = 1; next } /^```/ && inside { exit } inside' "$page" >"$code"
    case $1 in
    c) cc -std=c11 -D_GNU_SOURCE "${flags[@]}" "$code" -L"$build" -lholdfast -o "$dir/program" ;;
    cpp) c++ -std=c++17 "${flags[@]}" "$code" -L"$build" -lholdfast -o "$dir/program" ;;
    python) printf '#!/bin/sh\nexec python3 %s\n' "$code" >"$dir/program" ;;
    js) printf '#!/bin/sh\nexec node %s\n' "$code" >"$dir/program" ;;
    go) (cd "$dir/app" && go build -o "$dir/program" main.go) ;;
    sh) printf '#!/bin/sh\nexec sh %s\n' "$code" >"$dir/program" ;;
    esac
    chmod +x "$dir/program"
}

last=0
for kind in c cpp python js go sh; do
    program $kind >"$dir/said" 2>&1
    ok $? "$kind: compiles"
    said=$(cd "$dir/app" && PATH=$(dirname "$hf"):$PATH HOLDFAST_DIR=$dir/store timeout 60 "$dir/program" 2>&1)
    like "$said" 'writing with token [0-9]*' "$kind: runs"
    above "$(echo "$said" | tr -dc 0-9)" "$last" "$kind: with a token above the one before"
    last=$(echo "$said" | tr -dc 0-9)
done

for limit in cpp=500 python/holdfast=500 node=500 go=500; do
    count=$(python3 "$here/lines.py" "$root/bindings/${limit%=*}")
    [ "$count" -le "${limit#*=}" ]
    ok $? "bindings/${limit%=*}: $count lines of code, at most ${limit#*=}"
done
done_testing
