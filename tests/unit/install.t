#!/bin/sh
# install.t - `make install` puts things where it says, wherever the build was meant for at first.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-install.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MAKELEVEL HOLDFAST_STORE HOLDFAST_STORE_PATH
tests=0

ok() { # STATUS DESCRIPTION
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tests - $2"; else echo "not ok $tests - $2"; fi
}

is() { # GOT WANTED DESCRIPTION
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}

# The objects are there already: only what knows its place is made again.
mkdir "$dir/build"
cp -a build/obj build/gen build/stores build/holdfast build/libholdfast.* "$dir/build/"
build() { make -s BUILD="$dir/build" "$@" >"$dir/out" 2>&1 || sed 's/^/# /' "$dir/out"; }
build all PREFIX="$dir/one"
build install PREFIX="$dir/two" CPPFLAGS=-DUNUSED
[ -x "$dir/two/bin/holdfast" ] && [ ! -e "$dir/one" ]
ok $? 'built for one place, installed in another'

pc() { PKG_CONFIG_PATH="$1/lib/pkgconfig" pkg-config "$2" holdfast; }
is "$(pc "$dir/two" --variable=prefix)" "$dir/two" 'holdfast.pc names the other'
printf '#include <holdfast.h>\n#include <stdio.h>\nint main(void) { return puts(hf_version()) < 0; }\n' \
    >"$dir/a.c"
# shellcheck disable=SC2046 # flags
cc "$dir/a.c" $(pc "$dir/two" --cflags) $(pc "$dir/two" --libs) -o "$dir/a" &&
    [ -n "$(LD_LIBRARY_PATH="$dir/two/lib" "$dir/a")" ]
ok $? 'and programs build with it'

# A program that has left its place finds the plugins by the path it was built with.
cp "$dir/two/bin/holdfast" "$dir/astray"
for plugin in "$dir"/two/lib/holdfast/*.so; do
    [ -e "$plugin" ] || continue
    scheme=$(basename "$plugin" .so)
    "$dir/astray" --store "$scheme://127.0.0.1:1/?bogus=1" list >"$dir/out" 2>&1
    ! grep 'install it' "$dir/out"
    ok $? "the plugin for $scheme: is found"
done
! grep -l "$dir/one" "$dir/two/bin/holdfast" "$dir/two/lib/libholdfast.so" "$dir/two/lib/libholdfast.a" \
    >"$dir/out"
ok $? 'nothing remembers the first place'
sed 's/^/# /' "$dir/out"

build install PREFIX="$dir/two" LIBDIR="$dir/two/lib64"
is "$(PKG_CONFIG_PATH="$dir/two/lib64/pkgconfig" pkg-config --variable=libdir holdfast)" \
    "$dir/two/lib64" 'holdfast.pc follows LIBDIR'
touch "$dir/now"
build all PREFIX="$dir/two" LIBDIR="$dir/two/lib64"
is "$(find "$dir/build" -newer "$dir/now" -type f)" '' 'the same place again: nothing is made anew'
echo "1..$tests"
