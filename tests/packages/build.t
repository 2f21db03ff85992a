#!/bin/bash
# The Debian packages: lintian has nothing to say, and two builds in other folders, at other times and with other
# umasks give the same bytes.
# run: long
# run: once
set -u
. "$(dirname "$0")/../cli/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
for tool in dpkg-buildpackage dh lintian faketime; do
    command -v "$tool" >/dev/null || {
        echo "1..0 # SKIP $tool is not installed: scripts/deps.sh packages"
        exit 0
    }
done

PATH=$(case $PATH in */usr/lib/ccache*) echo /usr/lib/ccache: ;; esac)/usr/sbin:/usr/bin:/sbin:/bin

tree() { # FOLDER : what is in this tree, without what was built
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"
}
build() { # FOLDER COMMAND... : builds the packages there, in that manner
    (cd "$1" && export DEB_BUILD_OPTIONS=parallel=2 && "${@:2}" dpkg-buildpackage -b -us -uc) >"$1.log" 2>&1
    local status=$?
    ok $status "the packages are built by: ${*:2}"
    [ $status -eq 0 ] || diag "$(tail -n 20 "$1.log")"
}
plain() { (umask 022 && exec "$@"); }
strange() {
    # Files of long ago, a clock that is ahead, words of another language.
    find . -exec touch -h -d '2001-02-03 04:05:06' {} +
    (umask 077 && TZ=Asia/Kathmandu LC_ALL=C.UTF-8 HOME=/nonexistent exec faketime -f +300d "$@")
}

tree "$dir/one/holdfast"
build "$dir/one/holdfast" plain
tree "$dir/another/deep/down/source"
build "$dir/another/deep/down/source" strange

count=0
for deb in "$dir"/one/*.deb; do
    count=$((count + 1))
    cmp "$deb" "$dir/another/deep/down/${deb##*/}" >"$dir/out" 2>&1
    ok $? "the same bytes: ${deb##*/}"
    diag "$(cat "$dir/out")"
done
[ "$count" -ge 10 ]
ok $? "there are packages ($count)"

run lintian --fail-on warning --display-level '>=warning' "$dir"/one/*.changes
is "$rc:$out" 0: 'lintian has nothing to say'
for override in debian/*.lintian-overrides; do
    [ -e "$override" ] || continue
    head -n 1 "$override" | grep -q '^# .'
    ok $? "$override begins with a reason"
done

log=$dir/one/holdfast.log
is "$(grep -cw -e '-Werror[^=]' "$log")" 0 'a warning stops no build of a package'
cc=$(grep -m 1 'src/core/lease.c' "$log")
for flag in $(dpkg-buildflags --get CFLAGS | tr ' ' '\n' | grep -v prefix-map) $(dpkg-buildflags --get CPPFLAGS); do
    case $cc in *" $flag"*) ok 0 "dpkg-buildflags are heard: $flag" ;; *) is "$cc" "$flag" 'dpkg-buildflags are heard' ;; esac
done
readelf -d "$dir/one/holdfast/debian/holdfast/usr/bin/holdfast" | grep -q BIND_NOW
ok $? 'and those of the linker'
done_testing
