#!/bin/sh
# run.sh - builds and runs the tests; in the end it tells what failed, and the last line counts.
#
#   tests/run.sh            everything: the normal build, then under ASan+UBSan, then the threaded
#                           programs under TSan
#   tests/run.sh quick      the normal build only
#   tests/run.sh long       the normal build, only what is marked as long
#   tests/run.sh PATTERN    the normal build, only programs and .t files whose path has PATTERN in it
#
# What it runs it finds: the programs of the Makefile (tests/*/test_*.c) and every tests/*/*.t. Three
# marks in a file's text say more about it:
#
#   run: long      it takes minutes: only with `long`, or when it is asked for by its path
#   run: once      it does not depend on how holdfast was built: not again under the sanitizers
#   run: threads   a program with threads: under TSan too
#
# A test learns the build it is to look at from BUILD (a folder) and HOLDFAST (the program). With
# CI=true a test that was skipped counts as a failure.
set -u
cd "$(dirname "$0")/.." || exit 1

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

jobs=$(nproc 2>/dev/null || echo 2)
# Most tests wait for servers and clocks more than they compute.
tests_at_once=$((3 * jobs))
mode=all
pattern=
case ${1-} in
'') ;;
quick) mode=quick ;;
long) mode=long ;;
*) mode=quick pattern=$1 ;;
esac

export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_stack_use_after_return=1:abort_on_error=0"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-}:print_stacktrace=1"
export TSAN_OPTIONS="${TSAN_OPTIONS-}:second_deadlock_stack=1"
# What the caller holds or prefers is none of the tests' business.
unset HOLDFAST_STORE HOLDFAST_DIR HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_HELD \
    HOLDFAST_LOST_FD HOLDFAST_STORE_FD HOLDFAST_TRACE HOLDFAST_STORE_PATH STATE_DIRECTORY MAKEFLAGS MAKELEVEL

wanted() { # PATH : is it there, and asked for?
    [ -f "$1" ] || return 1
    [ -n "$pattern" ] || {
        if grep -q 'run: long' "$1"; then [ "$mode" = long ]; else [ "$mode" != long ]; fi
        return
    }
    case $1 in *"$pattern"*) return 0 ;; esac
    return 1
}

# programs FOLDER MARK : the test programs of a build; MARK '' takes all, else those that carry it.
programs() {
    for source in tests/*/test_*.c; do
        wanted "$source" || continue
        [ -z "$2" ] || grep -q "run: $2" "$source" || continue
        [ "$1" = build ] || ! grep -q 'run: once' "$source" || continue
        printf './%s/%s\n' "$1" "${source%.c}"
    done
}

scripts() { # FOLDER MARK
    for script in tests/*/*.t; do
        wanted "$script" || continue
        [ -z "$2" ] || grep -q "run: $2" "$script" || continue
        [ "$1" = build ] || ! grep -q 'run: once' "$script" || continue
        printf './%s\n' "$script"
    done
}

# What a test says on stderr is kept for the list of failures: many run at once, and on the screen
# nobody could tell whose words they are. What nohup(1) or a shell's "&" ignored for us is not ignored
# for a test.
cat >"$work/one" <<'EOF'
words=$RUN_WORDS/$(echo "$1" | tr / _)
exec perl -e '$SIG{$_} = "DEFAULT" for qw(HUP INT QUIT); exec @ARGV or die' "$@" 2>"$words"
EOF

# phase NAME FOLDER SANITIZERS : builds there and runs the tests named on stdin; the raw output goes
# to $work/NAME.tap, stderr to $work/NAME.words, what prove says of it to $work/NAME.prove
phase() {
    cat >"$work/$1.list"
    [ -s "$work/$1.list" ] || return 0
    echo "== $1"
    # shellcheck disable=SC2046 # the programs have plain names
    if ! make -s -j"$jobs" BUILD="$2" SAN="$3" $(build_goals "$2" "$work/$1.list"); then
        echo "the build for \"$1\" failed" | tee "$work/$1.broken"
        return 0
    fi
    mkdir "$work/$1.tap" "$work/$1.words"
    # shellcheck disable=SC2046
    BUILD=$2 HOLDFAST=$PWD/$2/holdfast PERL_TEST_HARNESS_DUMP_TAP=$work/$1.tap \
        RUN_WORDS=$work/$1.words \
        prove -j"$tests_at_once" --timer -e "sh $work/one" $(cat "$work/$1.list") 2>&1 </dev/null |
        tee "$work/$1.prove"
}

# Everything for .t files, which may look at anything. TSan gets no command-line program: of its .t
# files only those that run the conformance suite are threaded.
build_goals() { # FOLDER LIST
    if [ "$1" = build/tsan ] || ! grep -q '\.t$' "$2"; then
        sed -n "s|^\./\($1/\)|\1|p" "$2"
        [ ! -f tests/conform/conform.c ] || echo "$1/tests/conform/conform"
    else
        echo test-programs
    fi
}

{ programs build '' && scripts build ''; } | phase normal build ''
if [ "$mode" = all ]; then
    { programs build/asan '' && scripts build/asan ''; } | phase asan build/asan address,undefined
    { programs build/tsan threads && scripts build/tsan threads; } |
        phase tsan build/tsan thread
fi

# The count. A test line counts by what it says; a file that prove finds wrong although none of its
# lines failed (it crashed, or its plan is not met) counts as one failure.
count() { # TAP...
    awk -v work="$work/" '
    FNR == 1 {
        file = FILENAME
        sub(work, "", file)
        sub("[.]tap/([.]/)?", ": ", file)
    }
    /^(not )?ok/ && /# *[Ss][Kk][Ii][Pp]/ { skipped++; print "skipped: " file ": " $0; next }
    /^1\.\.0/ { skipped++; print "skipped: " file ": " $0; next }
    /^ok/ { passed++ }
    /^not ok/ { failed++ }
    END { print "counts", passed + 0, failed + 0, skipped + 0 }' "$@"
}

told_max=20 # lines of what a check, or a program, says

# The checks that failed, each with the lines of diagnosis that follow it.
failed_checks() { # TAP
    awk -v max=$told_max '
    /^not ok/ && !/# *[Ss][Kk][Ii][Pp]/ { print "  " $0; telling = max; next }
    /^#/ && telling-- > 0 { print "    " $0; next }
    { telling = 0 }' "$1"
}

# The beginning and the end of a longer text.
short() { # FILE
    if [ "$(wc -l <"$1")" -le $((2 * told_max)) ]; then
        cat "$1"
    else
        head -n $told_max "$1" && echo '...' && tail -n $told_max "$1"
    fi
}

# tell_failures PHASE : the files, what prove says of each, failed checks, words on stderr
tell_failures() {
    sed -n '/^Test Summary Report/,$ p' "$work/$1.prove" >"$work/report"
    sed -n '/(Wstat: /p' "$work/report" | while IFS= read -r line; do
        path=${line%% *}
        echo "failed: $1: ${path#./}${line#"$path"}"
        awk -v path="$path" '$1 == path { mine = 1; next } /^[^ ]/ { mine = 0 }
            mine && !/^ +Failed tests?:/ && !/Non-zero exit status: 1$/' "$work/report"
        [ ! -f "$work/$1.tap/$path" ] || failed_checks "$work/$1.tap/$path"
        words=$work/$1.words/$(echo "$path" | tr / _)
        [ ! -s "$words" ] || short "$words" | sed 's/^/    | /'
    done
}

find "$work" -path "$work/*.tap/*" -type f >"$work/taps"
# shellcheck disable=SC2046
count /dev/null $(cat "$work/taps") >"$work/counts"
wrong=$(cat "$work"/*.prove 2>/dev/null | grep -c '(Wstat: .* Failed: 0)$')
broken=$(find "$work" -name '*.broken' | wc -l)
grep '^skipped: ' "$work/counts"
for phase in normal asan tsan; do
    [ ! -f "$work/$phase.prove" ] || tell_failures "$phase"
    [ ! -f "$work/$phase.broken" ] || echo "failed: $phase: the build"
done
read -r _ passed failed skipped <<EOF
$(grep '^counts ' "$work/counts")
EOF
failed=$((failed + wrong + broken))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 1
[ "${CI-}" != true ] || [ "$skipped" -eq 0 ] || exit 1
# What prove finds wrong is a failure, whatever was counted.
! cat "$work"/*.prove | grep -q '^Result: FAIL'
