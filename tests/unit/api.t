#!/bin/sh
# api.t - the headers as others compile them, and what the shared library shows of itself.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-api.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
tests=0

ok() { # STATUS DESCRIPTION
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tests - $2"; else echo "not ok $tests - $2"; fi
}

says() { # FILE : what a command said, as a comment
    sed 's/^/# /' "$1"
}

# Each header by itself, in each language, with warnings that a careful caller may have on.
for header in holdfast.h holdfast/record.h holdfast/elect.h holdfast/once.h holdfast/several.h holdfast/store.h holdfast/fence.h holdfast/audit.h holdfast/waiters.h holdfast/repair.h holdfast/relay.h holdfast/begin.h holdfast/lock.h; do
    printf '#include <%s>\nint main(void) { return HF_VERSION_MAJOR; }\n' "$header" >"$dir/a.c"
    cp "$dir/a.c" "$dir/a.cc"
    for language in 'gcc -std=c99' 'gcc -std=c11 -Wpedantic' 'gcc -std=gnu17 -Wstrict-prototypes' \
        'g++ -std=c++11' 'g++ -std=c++17 -Wpedantic -Wold-style-cast'; do
        case $language in g++*) source=$dir/a.cc ;; *) source=$dir/a.c ;; esac
        # shellcheck disable=SC2086 # a compiler and its options
        $language -Wall -Wextra -Werror -fsyntax-only -Iinclude "$source" >"$dir/out" 2>&1
        ok $? "<$header> with $language"
        says "$dir/out"
    done
done

# A C++ program against the library: the names are C's.
cat >"$dir/b.cc" <<'EOF'
#include <holdfast.h>
#include <cstdio>
int main()
{
    hf_store *store;
    hf_error err;
    if (hf_open("nonsense", &store, &err) != HF_INVALID)
        return 1;
    return store != nullptr;
}
EOF
g++ -std=c++11 -Wall -Werror -Iinclude "$dir/b.cc" -L"$build" -lholdfast \
    -Wl,-rpath,"$PWD/$build" -o "$dir/b" >"$dir/out" 2>&1 && "$dir/b"
ok $? 'a C++ program links and runs'
says "$dir/out"

# What is exported is what the headers declare, and nothing else.
nm -D --defined-only "$build/libholdfast.so" | awk '$2 != "A" { print $3 }' |
    sed 's/@.*//' | sort >"$dir/exported"
sed -n 's/^HF_API .*[ *]\(hf_[a-z_]*\)(.*/\1/p' include/holdfast.h \
    include/holdfast/fence.h include/holdfast/record.h include/holdfast/elect.h include/holdfast/once.h include/holdfast/several.h include/holdfast/audit.h include/holdfast/waiters.h include/holdfast/repair.h include/holdfast/relay.h include/holdfast/begin.h include/holdfast/lock.h | sort -u >"$dir/declared"
[ -s "$dir/declared" ] && ! grep -v '^hf_[a-z]' "$dir/exported" >"$dir/out"
ok $? 'the shared library exports only hf_ names'
says "$dir/out"
diff "$dir/declared" "$dir/exported" >"$dir/out"
ok $? 'it exports what the headers declare, all of it'
says "$dir/out"

# The base program links libc only: no client library of any store.
readelf -d "$build/libholdfast.so" "$build/holdfast" | sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' |
    grep -v '^libc\.so\|^ld-linux' >"$dir/out"
[ ! -s "$dir/out" ]
ok $? 'library and program need libc only'
says "$dir/out"

echo "1..$tests"
