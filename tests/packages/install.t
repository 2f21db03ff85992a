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

# In a place without plugins.
mkdir "$dir/empty"
build "$dir/build/holdfast" PREFIX="$dir/empty/nowhere"
cp "$dir/build/holdfast" "$dir/empty/"
build all PREFIX="$dir/two"

# A program that has left its place finds the plugins by the path it was built with.
cp "$dir/two/bin/holdfast" "$dir/astray"
for plugin in "$dir"/two/lib/holdfast/*.so; do
    [ -e "$plugin" ] || continue
    scheme=$(basename "$plugin" .so)
    case $scheme in db-* | send-*) continue ;; esac # no stores
    "$dir/astray" --store "$scheme://127.0.0.1:1/?bogus=1" list >"$dir/out" 2>&1
    ! grep 'apt-get install' "$dir/out"
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

# What comes last of `make`: what is there, and what is missing for the rest.
is "$(make -s BUILD="$dir/build" PREFIX="$dir/two" LIBDIR="$dir/two/lib64" | tail -n 1)" \
    "built: file $(scripts/plugins.sh names | tr '\n' ' ' | sed 's/ $//'); nothing skipped" 'make ends with what it built'
last=$(PKG_CONFIG_LIBDIR=$dir PKG_CONFIG_PATH=$dir make -s BUILD="$dir/build" PREFIX="$dir/two" LIBDIR="$dir/two/lib64" |
    tail -n 1)
# Without pkg-config's files those are left that have a file `libs`.
built=$(for file in src/stores/*/libs; do basename "${file%/libs}"; done | tr '\n' ' ')
skipped=$(for file in src/stores/*/packages; do basename "${file%/packages}"; done | tr '\n' ' ')
case $last in
"built: file ${built% }; skipped: $skipped"*'for want of '*libhiredis-dev*'(apt-get install '*' && make)') ok 0 'or with what it skipped, and what to do' ;;
*) is "$last" 'built: ...; skipped: ...' 'or with what it skipped, and what to do' ;;
esac
# A build from source names what its build lacked, and where a plugin may be.
for file in src/stores/*/apt; do
    scheme=$(basename "${file%/apt}")
    needs=$(cat "$file")
    (cd "$dir" && HOLDFAST_STORE_PATH='' ./empty/holdfast --store "$scheme://h" list) >"$dir/out" 2>&1
    grep -q "apt-get install $needs, then make and make install" "$dir/out"
    ok $? "no plugin for $scheme: the line for apt, and make"
    sed 's/^/# /' "$dir/out"
done

# What was installed goes away again, and nothing else does.
touch "$dir/two/lib64/holdfast/mine.so"
build uninstall PREFIX="$dir/two" LIBDIR="$dir/two/lib64"
build uninstall PREFIX="$dir/two"
is "$(cd "$dir/two" && find . ! -type d)" './lib64/holdfast/mine.so' 'make uninstall removes what make install made'
left() { (cd "$1" && find . | sort | tr '\n' ' '); }
build install DESTDIR="$dir/root" PREFIX=/usr
build uninstall DESTDIR="$dir/root" PREFIX=/usr
is "$(left "$dir/root/usr")" '. ./bin ./include ./lib ./share ./share/man ' 'also below DESTDIR, with the folders that were made for it'

# In a place whose name has a blank.
place="$dir/another place"
build install PREFIX="$place"
"$place/bin/holdfast" --store http://127.0.0.1:1/?bogus=1 list >"$dir/out" 2>&1
! grep 'apt-get install' "$dir/out"
ok $? 'in a folder with a blank in its name, plugins are found'
is "$(pc "$place" --libs-only-L)" "-L$(echo "$place/lib" | sed 's/ /\\ /') " 'pkg-config too'
is "$(grep -h '^ExecStart=/' "$place"/lib/systemd/system/holdfast-*.service | sed 's/holdfast .*/holdfast/' | sort -u)" \
    "ExecStart=$(echo "$place" | sed 's/ /\\x20/')/bin/holdfast" 'and systemd finds the program'
if command -v systemd-analyze >/dev/null; then
    # What is wrong with other units of this machine is not ours.
    SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$place/lib/systemd/system/holdfast-serve.service" 2>&1 | grep holdfast >"$dir/out"
    is "$(cat "$dir/out")" '' 'as it says'
fi
build uninstall PREFIX="$place"
is "$(left "$place")" '. ./bin ./include ./lib ./share ./share/man ' 'make uninstall finds everything'
echo "1..$tests"
