#!/bin/bash
# toy.t - a stranger adds a store, by the list in src/stores/README.md: a folder, a line in the table of the registry, a
# folder of tests. In a copy of the tree it is built, told of, tested, tidy, and keeps the promises of the conformance suite.
# run: once
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-toy.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
build=${BUILD:-build}
n=0
report() { # STATUS TEXT : tells what was said if it failed
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        tail -n 30 "$dir/out" | sed 's/^/# /'
    fi
}

# What is already built is not built again: the copy keeps the times of its files.
mkdir "$dir/tree"
git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null |
    tar -cf - -T - | tar -xf - -C "$dir/tree"
[ "$build" != build ] || tar -cf - build/obj build/gen build/place | tar -xf - -C "$dir/tree"

cp -r tests/support/toy "$dir/tree/src/stores/toy"
touch "$dir/tree/src/stores/toy/libs" "$dir/tree/src/stores/toy/apt" # it needs none
mkdir "$dir/tree/tests/toy"
cat >"$dir/tree/tests/toy/basic.t" <<'EOF'
#!/bin/sh
# basic.t - a lock is taken.
"$HOLDFAST" --store "toy:$(mktemp -d)/table" run -n job -- echo 'ok 1 - it runs'
echo 1..1
EOF
chmod +x "$dir/tree/tests/toy/basic.t"
# It reaches what the store hides from others.
cat >"$dir/tree/tests/toy/test_entry.c" <<'EOF'
/* test_entry.c - what the plugin offers. */
#include "../support/check.h"

#include <holdfast/store.h>
#include <string.h>

static void it_serves_one_scheme(void **state)
{
    (void)state;
    assert_string_equal(hf_store_plugin()->ops->schemes[0], "toy");
    assert_null(hf_store_plugin()->ops->schemes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_serves_one_scheme)};

    return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
EOF
sed -i 's/^    {"etcd", {"etcd"}, NULL},$/&\n    {"toy", {"toy"}, NULL},/' "$dir/tree/src/client/registry.c"
diff -r src "$dir/tree/src" >"$dir/out"
[ "$(grep -c '^[<>]' "$dir/out")" -eq 1 ] && [ "$(grep -c '^Only' "$dir/out")" -eq 1 ]
report $? 'it is a folder and a line'

make -C "$dir/tree" -j2 -s all build/tests/conform/conform >"$dir/out" 2>&1
report $? 'it is built'
grep -q '^built: .* toy ' "$dir/out"
report $? 'and make says so in the end'
git -C "$dir/tree" init -q && "$dir/tree/tests/tidy.sh" >"$dir/out" 2>&1
report $? 'tests/tidy.sh has nothing to say against it'
(cd "$dir/tree" && tests/run.sh quick toy/) >"$dir/out" 2>&1
grep -q '^2 passed, 0 failed' "$dir/out"
report $? 'its own tests are found, built and run'
"$dir/tree/build/holdfast" --store nosuch://h list >"$dir/out" 2>&1
grep -q 'known are .*etcd, toy, zookeeper' "$dir/out"
report $? 'it is known'
"$dir/tree/build/holdfast" --store "toy:$dir/table" run -n job -- true >"$dir/out" 2>&1
report $? 'it is used'
timeout 300 make -C "$dir/tree" -s conform URL="toy:$dir/table" >"$dir/out" 2>&1
report $? 'it keeps the promises of the conformance suite'
[ "$(grep -c '^ok ' "$dir/out")" -ge 20 ]
report $? "... all $(grep -c '^ok ' "$dir/out")"
echo "1..$n"
