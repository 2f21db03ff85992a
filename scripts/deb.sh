#!/bin/sh
# deb.sh FOLDER - builds the Debian packages of this tree into FOLDER, from a copy of it.
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: deb.sh FOLDER}
version=$(dpkg-parsechangelog -S Version)
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$out
# pybuild takes a path for words.
case $out in *[[:space:]]*)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    ;;
esac
mkdir "$work/holdfast-$version"
# A repository around an unpacked tree knows nothing of its files.
if git ls-files --error-unmatch scripts/deb.sh >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
else
    find . \( -path ./build -o -path ./.git -o -samefile "$out" \) -prune -o -type f -print0 -o -type l -print0
fi | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$work/holdfast-$version"
log=$out/build.log
# The system's tools: another python3 or pkg-config in front of them knows nothing of its packages.
case $PATH in */usr/lib/ccache*) first=/usr/lib/ccache: ;; *) first= ;; esac
PATH=$first/usr/sbin:/usr/bin:/sbin:/bin
# What was said to our make is not meant for that of the packages.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD SAN PREFIX DESTDIR
if ! (cd "$work/holdfast-$version" && DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-parallel=$(nproc)}" \
    dpkg-buildpackage -b -us -uc) >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "The packages could not be built; $log has it all." >&2
    exit 1
fi
rm -rf "$work/holdfast-$version"
[ "$work" = "$out" ] || mv "$work"/* "$out/"
echo "packages:"
ls "$out"/*.deb
echo "install what you need, for instance:  apt install '$(ls "$out"/holdfast_*.deb)'"
