# fuzz.sh - builds and runs a fuzz target. Sourced by bash after `set -u`.
#
#   fuzz_build SOURCE|FLAG...         builds the target with clang; without clang, libFuzzer or a library of
#                                     the target it skips the whole test; what does not compile has failed
#   seed NAME                         stdin goes into the corpus
#   fuzz_run MAX_LEN DESCRIPTION      a fixed number of runs from a fixed seed: one check
#
# A finding lands in the test's own folder, never where the test was started; its bytes are shown.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/stage.sh"
# What a finding may be worth on the screen, in lines of 76 characters of base64.
finding_lines=40

fuzz_clang() { # FLAG...
    clang -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -g -O1 -std=c11 \
        -D_GNU_SOURCE -I"$root/include" -I"$root/src" "$@" 2>"$dir/log"
}

# What several targets have below them is compiled once in a run of the tests.
fuzz_shared() { # SOURCE : sets shared, its object
    local object
    object=${RUN_WORK-$dir}/fuzz/$(tr / _ <<<"${1#"$root/src/"}").o
    shared=$object
    [ ! -e "$object" ] || return 0
    mkdir -p "${object%/*}"
    fuzz_clang -c "$1" -o "$object.$$" && mv "$object.$$" "$object"
}

fuzz_cc() { # OUTPUT SOURCE|FLAG...
    local output=$1 word words=() shared
    shift
    for word in "$@"; do
        case $word in
        "$root"/src/base/*.c | "$root"/src/core/*.c | "$root"/src/stores/file/*.c)
            fuzz_shared "$word" || return
            words+=("$shared")
            ;;
        *) words+=("$word") ;;
        esac
    done
    fuzz_clang -o "$output" "${words[@]}"
}

# What is not installed is missing for an empty target, too. Whatever else goes wrong is our mistake.
fuzz_build() {
    local word flags=()
    mkdir "$dir/corpus" "$dir/findings"
    fuzz_cc "$dir/fuzz" "$@" && return
    cp "$dir/log" "$dir/build.log"
    for word in "$@"; do
        [[ $word == -* ]] && flags+=("$word")
    done
    echo 'int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return !data && size; }' >"$dir/empty.c"
    fuzz_cc "$dir/empty" "$dir/empty.c" "${flags[@]}" ||
        skip_all "clang with libFuzzer, or a library, is not installed: $(head -n 1 "$dir/log")"
    ok 1 'the fuzz target compiles'
    head -n 20 "$dir/build.log" | sed 's/^/# /'
    done_testing
}

seed() { cat >"$dir/corpus/$1"; }

fuzz_run() {
    local finding good
    "$dir/fuzz" -runs="${FUZZ_RUNS:-200000}" -seed=1 -max_len="$1" -max_total_time=60 \
        -artifact_prefix="$dir/findings/" "$dir/corpus" >"$dir/log" 2>&1
    good=$?
    ok $good "$2"
    grep -o 'cov: [0-9]* ft: [0-9]*' "$dir/log" | tail -n 1 | sed 's/^/# /'
    [ $good -ne 0 ] || return 0
    grep -E 'ERROR|SUMMARY|runtime error|^ +#[0-9]' "$dir/log" | head -n 20 | sed 's/^/# /'
    for finding in "$dir"/findings/*; do
        [ -e "$finding" ] || continue
        echo "# ${finding##*/}, in base64:"
        base64 "$finding" | head -n $finding_lines | sed 's/^/#   /'
    done
}
