#!/bin/bash
# package.sh - `holdfast run` of the Debian package beside that of the build folder, whole processes in turns. Prints rows
# as rows.sh does.
set -u
cd "$(dirname "$0")/.." || exit 1
here=$PWD
. "$here/bench/rows.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ -n "${DEB-}" ] || { scripts/deb.sh build/deb >&2 && DEB=$(ls build/deb/holdfast_*.deb); }
dpkg-deb -x "$DEB" "$dir/package"
declare -A us
while read -r name took; do
    us[$name]=$took
done < <(HOLDFAST_STORE=file:$dir/store perl "$here/bench/once.pl" 600 "$dir" "build=$here/build/holdfast|run|-n|b|--|true" \
    "package=$dir/package/usr/bin/holdfast|run|-n|b|--|true")
row package.run_build "${us[build]-}" - us
row package.run_package "${us[package]-}" - us
row package.run_vs_build "$(ratio "${us[package]-}" "${us[build]-}")" '<=1.05' x
