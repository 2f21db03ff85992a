#!/bin/bash
# The header for C++: the cases of the bindings in C++17 and C++20, without exceptions, and the examples of
# its README.
# run: first
set -u
. "$(dirname "$0")/../redis/lib.sh"
cd "$root" || exit 1
command -v g++ >/dev/null || skip_all 'g++ is not installed'
compile() { # STANDARD SOURCE OUTPUT [OPTION...] : with the sanitizers of the build
    local flags=()
    case $build in */asan) flags=('-fsanitize=address,undefined') ;; esac
    g++ -std="$1" -O1 -g -Wall -Wextra -Wpedantic -Wconversion -Wold-style-cast -Werror "${@:4}" "${flags[@]}" \
        -Iinclude -Ibindings/cpp "$2" -L"$build" -lholdfast -Wl,-rpath,"$build" -pthread -o "$3" >"$dir/out" 2>&1
    ok $? "$2 as $1 ${*:4}"
    sed 's/^/# /' "$dir/out"
}

cases() { # PROGRAM URL [PID YOUNG] : its lines become ours
    local line
    while IFS= read -r line; do
        case $line in
        'ok - ('*) ;; # a means to an end
        'ok - '*) ok 0 "${2%%:*}: ${line#ok - }" ;;
        'not ok - '*) ok 1 "${2%%:*}: ${line#not ok - }" ;;
        *) echo "# $line" ;;
        esac
    done < <(timeout 120 "$1" "$2" "$hf" "${@:3}" 2>&1 || echo "not ok - exit code $?")
}

redis_start calm
calm calm
compile c++20 tests/bindings/cases.cc "$dir/cases20"
compile c++17 tests/bindings/cases.cc "$dir/cases17"
cases "$dir/cases20" "file:$dir/store"
redis_start young # just now: what was compiled may have taken as long as a quarantine
cases "$dir/cases20" "$(url calm)" "$(pid calm)" "$(url young)?max_ttl=2m"
cases "$dir/cases17" "file:$dir/store17"

# The README's, each in the oldest language that it needs, and the one that says so without exceptions.
awk -v to="$dir/example" '/^```cpp$/ { inside = 1; n++; next } /^```/ { inside = 0 } inside { print > (to n ".cc") }' \
    bindings/cpp/README.md
export HOLDFAST_DIR=$dir/default
compile c++17 "$dir/example1.cc" "$dir/example1"
like "$("$dir/example1")" 'working with token [1-9]*' 'the first example runs'
compile c++17 "$dir/example2.cc" "$dir/example2" -fno-exceptions -fno-rtti
"$dir/example2"
ok $? 'the one without exceptions runs'
"$hf" run nightly -- "$dir/example2"
is "$?" 75 'and says busy'
cat >"$dir/bare.cc" <<'END'
#include <holdfast.hpp>
#include <cstdio>

int main()
{
    auto store = holdfast::Store::try_open("");
    if (!store)
        return 1;
    bool fails = true;
    holdfast::OnceOptions options;
    options.retries = 1;
    auto once = store->try_once("bare", options, [&](holdfast::Turn &turn) {
        turn.output = turn.slot;
        return turn.try_check() && !std::exchange(fails, false);
    });
    auto all = store->try_all({"bare 1", "bare 2"});
    auto refused = store->try_elect("bare 3", {}, [](holdfast::Lease &lease) { return bool(lease.try_release()); });
    std::printf("%d %s %d\n", once && once->ran, once ? once->output.c_str() : once.failure().text.c_str(),
                all && all->try_release() && refused);
}
END
for standard in 17 20; do
    compile c++$standard "$dir/bare.cc" "$dir/bare$standard" -fno-exceptions -fno-rtti
done
is "$("$dir/bare17")" '1 ever 1' 'once, all and elect without exceptions'
is "$("$dir/bare20")" '0 ever 1' 'and once is done'
compile c++20 "$dir/example3.cc" "$dir/example3"
"$dir/example3"
ok $? 'the one with stop tokens runs'
compile c++17 "$dir/example4.cc" "$dir/example4"
like "$("$dir/example4")" 'row12/a [1-9]* [1-9]*' 'the one with several locks runs'
compile c++17 "$dir/example5.cc" "$dir/example5"
is "$("$dir/example5")" 'done here' 'the one with once runs'
like "$("$dir/example5")" '"report", slot *: done by *' 'and says who has done it'

# A library that is older than the header.
printf 'const char *hf_version(void) { return "0.1.9"; }\n' >"$dir/old.c"
gcc -shared -fPIC "$dir/old.c" -o "$dir/old.so"
answer=$(LD_PRELOAD=$dir/old.so ASAN_OPTIONS=verify_asan_link_order=0 "$dir/example2" 2>&1)
version=$(sed -n 's/^.define HF_VERSION_STRING "\(.*\)"/\1/p' include/holdfast.h)
like "$answer" "libholdfast 0.1.9 was loaded, but this program was compiled for $version: *" 'an old library: one sentence'
done_testing
