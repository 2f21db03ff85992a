#!/bin/bash
# The Debian packages: lintian has nothing to say, and two builds in other folders, at other times and with other
# umasks give the same bytes.
# run: long
# run: once
set -u
LIMIT_S=1400
. "$(dirname "$0")/../cli/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
for tool in dpkg-buildpackage dh lintian faketime; do
    command -v "$tool" >/dev/null || {
        echo "1..0 # SKIP $tool is not installed: scripts/deps.sh packages"
        exit 0
    }
done

tree() { # FOLDER : what is in this tree, without what was built
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"
}
build() { # LOG COMMAND... : builds the packages, in that manner
    DEB_BUILD_OPTIONS=parallel=2 "${@:2}" >"$1" 2>&1
    local status=$?
    ok $status "the packages are built: ${*:2}"
    [ $status -eq 0 ] || diag "$(tail -n 20 "$1")"
}
# As somebody does who has unpacked the sources, in a folder of theirs, and says where the output goes.
make_deb() { (cd "$1" && umask 022 && make deb BUILD=elsewhere); }
strange() ( # FOLDER : with files of long ago, a clock that is ahead, words of another language
    cd "$1" || exit 1
    find . -exec touch -h -d '2001-02-03 04:05:06' {} +
    export PATH TZ=Asia/Kathmandu LC_ALL=C.UTF-8 HOME=/nonexistent
    PATH=$(case $PATH in */usr/lib/ccache*) echo /usr/lib/ccache: ;; esac)/usr/sbin:/usr/bin:/sbin:/bin
    umask 077
    exec faketime --exclude-monotonic -f +300d dpkg-buildpackage -b -us -uc
)
names() { (cd "$1" && find . | sort); }

tree "$dir/~my folder/holdfast"
build "$dir/out" make_deb "$dir/~my folder/holdfast"
one="$dir/~my folder/holdfast/elsewhere/deb"
another=$dir/another/deep/down
tree "$another/source"
names "$another/source" >"$dir/before"
build "$dir/out" strange "$another/source"
(cd "$another/source" && debian/rules clean) >"$dir/out" 2>&1
is "$(names "$another/source" | diff "$dir/before" -)" '' 'debian/rules clean leaves the sources'

count=0
for deb in "$one"/*.deb; do
    count=$((count + 1))
    cmp "$deb" "$another/${deb##*/}" >"$dir/out" 2>&1
    ok $? "the same bytes: ${deb##*/}"
    diag "$(cat "$dir/out")"
done
[ "$count" -ge 10 ]
ok $? "there are packages ($count)"

run lintian --fail-on warning --display-level '>=warning' "$one"/*.changes
is "$rc:$out" 0: 'lintian has nothing to say'
for override in debian/*.lintian-overrides; do
    [ -e "$override" ] || continue
    head -n 1 "$override" | grep -q '^# .'
    ok $? "$override begins with a reason"
done

log=$one/build.log
is "$(grep -cw -e '-Werror[^=]' "$log")" 0 'a warning stops no build of a package'
cc=$(grep -m 1 'src/core/lease.c' "$log")
for flag in $(dpkg-buildflags --get CFLAGS | tr ' ' '\n' | grep -v prefix-map) $(dpkg-buildflags --get CPPFLAGS); do
    case $cc in *" $flag"*) ok 0 "dpkg-buildflags are heard: $flag" ;; *) is "$cc" "$flag" 'dpkg-buildflags are heard' ;; esac
done
dpkg-deb -x "$one"/holdfast_*.deb "$dir/unpacked"
readelf -d "$dir/unpacked/usr/bin/holdfast" | grep -q BIND_NOW
ok $? 'and those of the linker'
done_testing
