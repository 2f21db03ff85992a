#!/bin/bash
# What can be told of the Debian packages without building them: one version, every symbol and every file in its
# place, what a purge does. build.t and chroot.t build and install them, and take minutes.
# run: once
set -u
. "$(dirname "$0")/../cli/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${BUILD:-build}" && pwd)
cd "$root" || exit 1

version=$(sed -n 's/^.define HF_VERSION_STRING "\(.*\)"/\1/p' include/holdfast.h)
is "$(sed -n '1s/^holdfast (\(.*\)) .*/\1/p' debian/changelog)" "$version" 'debian/changelog has the version of the header'
like "$(sed -n '3p' CHANGELOG.md)" "^## $version" 'and so has CHANGELOG.md'
is "$(sed -n 's/^.define HF_VERSION_\(MAJOR\|MINOR\|PATCH\) *//p' include/holdfast.h | paste -sd .)" "$version" \
    'and the numbers beside it'
is "$(sed -n 's/^version = "\(.*\)"/\1/p' bindings/python/pyproject.toml)" "$version" 'and the module for Python'
is "$(sed -n 's/^ *"version": "\(.*\)",$/\1/p' bindings/node/package.json)" "$version" 'and the one for Node, which asks for that library'
is "$(grep -L "^\.TH .* \"holdfast $version\"" man/* | tr '\n' ' ')" '' 'and every man page'

# A symbol that is missing here is missing in the package of whoever links with it.
nm -D --defined-only "$build/libholdfast.so" | awk '$2 != "A" { print $3 }' | sed 's/@@*/@/' | sort >"$dir/exported"
sed -n 's/^ \(hf_[^ ]*\) .*/\1/p' debian/libholdfast0.symbols | sort >"$dir/listed"
is "$(diff "$dir/listed" "$dir/exported")" '' "debian/libholdfast0.symbols has what the library exports (since $version)"

# What `make install` installs is in one package each.
if make -s BUILD="$dir/build" -n all >/dev/null 2>&1; then
    mkdir "$dir/build"
    cp -a "$build/obj" "$build/gen" "$build/stores" "$build/holdfast" "$build"/libholdfast.* "$dir/build/"
    make -s BUILD="$dir/build" install DESTDIR="$dir/root" PREFIX=/usr LIBDIR=/usr/lib/multiarch >"$dir/out" 2>&1 || diag "$(cat "$dir/out")"
fi
: >"$dir/claims"
cat debian/*.install | while read -r pattern _; do
    # shellcheck disable=SC2086 # a pattern
    (cd "$dir/root" && find $pattern ! -type d 2>/dev/null || echo "nothing: $pattern")
done | sort >"$dir/claims"
(cd "$dir/root" && find usr ! -type d) | sort >"$dir/files"
is "$(diff "$dir/files" "$dir/claims")" '' 'every file that is installed is in one package, and the packages name no others'
for name in $(scripts/plugins.sh names); do
    package=$(scripts/plugins.sh table | sed -n "s/^{\"$name\", \"\([^\"]*\)\".*/\1/p")
    grep -qxE "usr/lib/\*/holdfast/($name\.so|holdfast-$name)" "debian/$package.install"
    ok $? "$name is in $package, which the error names"
    for needed in $(scripts/plugins.sh table | sed -n "s/^{\"$name\", \"[^\"]*\", \"\([^\"]*\)\".*/\1/p"); do
        grep -q "^ *$needed,\$" debian/control
        ok $? "its $needed is in Build-Depends"
    done
done

# In a package an error names the package.
make -s BUILD="$dir/build" CPPFLAGS=-DHF_PACKAGED=1 PREFIX="$dir/nowhere" -W src/client/plugin_missing.c "$dir/build/holdfast" \
    >"$dir/out" 2>&1
mkdir "$dir/alone"
cp "$dir/build/holdfast" "$dir/alone/"
run "$dir/alone/holdfast" --store redis://h list
like "$err" 'apt install holdfast-redis' 'a store whose package is not installed: its name'
run "$dir/alone/holdfast" --store redlock://a,b,c list
like "$err" 'apt install holdfast-redis' 'also for its other schemes'
run "$dir/alone/holdfast" --store gopher://h list
like "$err" 'is in a package holdfast-.*known are file, redis' 'an unknown scheme: what is known, and where from'
run "$dir/alone/holdfast" serve
like "$err" 'holdfast-serve is not installed: apt install holdfast-serve' 'the server: its package'
run "$dir/alone/holdfast" outbox relay --db sqlite:x --http http://127.0.0.1:1
like "$err" 'apt install holdfast-(sqlite|http)' 'a database: its package'

# A purge, in a folder of ours.
sed "s|/var/lib/holdfast|$dir/lib|; /DEBHELPER/d" debian/holdfast.postrm >"$dir/postrm"
start "$hf" --store "file:$dir/lib" run job -- sleep 60
within 20 "$hf" --store "file:$dir/lib" status --held job >/dev/null
run sh "$dir/postrm" purge
is "$rc" 0 'a purge while a job runs succeeds'
like "$out" 'stays: a process uses' 'says that the store stays'
"$hf" --store "file:$dir/lib" status --held job >/dev/null
ok $? 'and the lock is held as before'
kill "$pid"
ended "$pid"
run sh "$dir/postrm" remove
[ -d "$dir/lib" ]
ok $? 'removing the package leaves the store'
run sh "$dir/postrm" purge
is "$rc" 0 'a purge when nobody uses it'
[ ! -e "$dir/lib" ]
ok $? 'removes the store'
like "$out" 'tokens.*|stale' 'and says what that means for tokens'
run sh "$dir/postrm" purge
is "$rc:$out" 0: 'again: nothing to do, nothing to say'
# Where it is not a plain directory, or will not go.
mkdir "$dir/disk"
"$hf" --store "file:$dir/disk" run -n job -- true
ln -s disk "$dir/lib"
run sh "$dir/postrm" purge
is "$rc:$(readlink "$dir/lib"):$([ -n "$(ls -A "$dir/disk")" ] && echo there)" 0:disk:there 'a link to a store elsewhere stays, and so does the store'
like "$out" 'link to disk; both stay' 'says so'
rm "$dir/lib"
mkdir "$dir/lib" "$dir/bin"
touch "$dir/lib/file"
printf '#!/bin/sh\necho "cannot remove" >&2\nexit 1\n' >"$dir/bin/rm"
chmod +x "$dir/bin/rm"
run env PATH="$dir/bin:$PATH" sh "$dir/postrm" purge
is "$rc" 0 'a store that cannot be removed does not stop the purge'
like "$out" 'could not be removed' 'says that it is there'
unlike "$out" 'is gone' 'and not that it is gone'
rm "$dir/lib/file"
run env PATH="$dir/bin:$PATH" sh "$dir/postrm" purge
like "$out" 'is gone' 'an empty directory that stays, where something is mounted, is no store'
done_testing
