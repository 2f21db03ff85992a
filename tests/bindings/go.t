#!/bin/bash
# go.t - what may go wrong in Go: a thousand goroutines, storms of cancelled contexts, leases that nobody releases;
# a library that does not fit; its README is true. In the long tests under the race detector.
# run: once, run: first, run: also long
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
two_stores

race=${HOLDFAST_LONG:+-race}
for kind in file redis; do
    # shellcheck disable=SC2086 # a word or none
    (cd "$root/bindings/go" && HOLDFAST_TEST_STORE=${store_url[$kind]} timeout 280 go test $race -count=1 -v .) >"$dir/said" 2>&1
    passed=$?
    while read -r verdict name; do
        [ "$verdict" = PASS: ]
        ok $? "$kind: ${name% (*}"
    done < <(sed -n 's/^--- \([A-Z]*:\) /\1 /p' "$dir/said")
    ok $passed "$kind: go test${race:+ $race}"
    [ $passed -eq 0 ] || tail -n 30 "$dir/said" | sed 's/^/# /'
done
(cd "$root/bindings/go" && go vet . && [ -z "$(gofmt -l . "$here/drivers/go")" ])
ok $? 'go vet and gofmt'

mkdir "$dir/other"
for version in 0.0.9 1.0.0; do
    another_library $version whole
    cp "$dir/other.so" "$dir/other/libholdfast.so.0"
    like "$(echo '["open","file:"]' | LD_LIBRARY_PATH=$dir/other "$made/go" 2>&1)" \
        "*this program needs libholdfast 0.*, and libholdfast.so.0 is $version*" "libholdfast $version is refused at Open"
done

mkdir "$dir/app"
cd "$dir/app" || exit 1
printf 'module app\n\ngo 1.19\n\nrequire holdfast v0.0.0\n\nreplace holdfast => %s\n' "$root/bindings/go" >go.mod
# shellcheck disable=SC2317 # examples calls it
run_go() { cp "$1" "$dir/app/main.go" && (cd "$dir/app" && go build -o example .) && "$dir/app/example"; }
export -f run_go
export dir
examples go "$root/bindings/go/README.md" bash -c 'run_go "$1"' -
done_testing
