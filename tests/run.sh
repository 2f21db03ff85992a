#!/bin/sh
# run.sh [HOW] [WHICH] - builds and runs the tests; in the end it tells what failed, and the last line counts.
#
# HOW:   all      (the default without WHICH) in the normal build; under ASan+UBSan the programs, the
#                 conformance suite over two stores, the commands, and what a store makes of hostile
#                 answers; and what has threads under TSan
#        quick    (the default with WHICH) in the normal build only
#        check    what needs no server, in the normal build: units, rules of the tree, file store, commands
#        long     what takes minutes, in the normal build; and under ASan+UBSan what `all` leaves out
# WHICH: a folder of tests/ (redis), or a part of the paths of the tests that are meant (redis/queue)
#
# What it runs it finds: the programs of the Makefile (tests/*/test_*.c) and every tests/*/*.t. Marks in the
# first lines of a file say more about it:
#
#   run: long        it takes minutes: only with `long`, or when it is asked for by its path
#   run: also long   with `long` again, and then it may take minutes: HOLDFAST_LONG=1 tells it; not with `check`
#   run: once        it does not depend on how holdfast was built: not again under the sanitizers
#   run: threads     a program with threads: under TSan too
#   run: first       it takes longer than most, so it begins before them
#
# A test learns the build it is to look at from BUILD (a folder) and HOLDFAST (the program). With
# CI=true a test that was skipped counts as a failure. TESTS_AT_ONCE says how many run at the same time.
set -u
cd "$(dirname "$0")/.." || exit 1

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

jobs=$(nproc 2>/dev/null || echo 2)
no_server='tests/unit/* tests/file/* tests/fence/test_* tests/cli/* tests/tools/tree.t tests/conform/file*.t'
# Where the sanitizers find what they are there for; the other scripts mostly start servers.
asan_soon='tests/*/test_* tests/conform/file*.t tests/conform/redis.t tests/cli/* tests/*/faults.t tests/*/fuzz*.t'
mode=
case ${1-} in
all | quick | check | long)
    mode=$1
    shift
    ;;
esac
which=${1-}
[ -n "$mode" ] || mode=$([ -n "$which" ] && echo quick || echo all)

export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_stack_use_after_return=1:abort_on_error=0"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-}:print_stacktrace=1"
export TSAN_OPTIONS="${TSAN_OPTIONS-}:second_deadlock_stack=1"
# What the caller holds or prefers is none of the tests' business.
unset HOLDFAST_STORE HOLDFAST_DIR HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER HOLDFAST_HELD HOLDFAST_TOKENS HOLDFAST_OWNERS HOLDFAST_SLOT \
    HOLDFAST_LOST_FD HOLDFAST_STORE_FD HOLDFAST_TRACE HOLDFAST_STORE_PATH STATE_DIRECTORY MAKEFLAGS MAKELEVEL
[ "$mode" != long ] || export HOLDFAST_LONG=1
[ "$mode" != check ] || export FUZZ_RUNS="${FUZZ_RUNS:-20000}" # a tenth
# Tests wait for servers and clocks more than they compute, but must not wait for each other. Those that need no
# server only wait for clocks.
tests_at_once=${TESTS_AT_ONCE:-$([ "$mode" = check ] && echo $((4 * jobs + 2)) || echo $((4 * jobs)))}

MARK_LINES=12 # a mark further down is a word of the test itself
marked() { # PATH MARK
    head -n $MARK_LINES "$1" | grep -q "run: $2"
}

wanted() { # PATH PHASE : is it there, and asked for?
    [ -f "$1" ] || return 1
    if [ -d "tests/${which:-.}" ]; then
        case $1 in "tests/${which:+${which%/}/}"*) ;; *) return 1 ;; esac
    else
        case $1 in *"$which"*) [ "$mode" = long ] || return 0 ;; *) return 1 ;; esac
    fi
    case $mode-$2 in
    long-asan) ! marked "$1" long && ! marked "$1" 'also long' && ! fits "$1" "$asan_soon" ;;
    long-*) marked "$1" long || marked "$1" 'also long' ;;
    check-*) ! marked "$1" long && ! marked "$1" 'also long' && fits "$1" "$no_server" ;;
    all-asan) ! marked "$1" long && { [ -n "$which" ] || fits "$1" "$asan_soon"; } ;;
    *) ! marked "$1" long ;;
    esac
}

fits() { # PATH PATTERNS
    # shellcheck disable=SC2254 # they are patterns
    for pattern in $2; do
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# tests_of PHASE [MARK] : "PHASE/PATH" of the programs and scripts to run there, the slow ones first
tests_of() {
    for source in tests/*/test_*.c tests/*/*.t; do
        wanted "$source" "$1" || continue
        [ -z "${2-}" ] || marked "$source" "$2" || continue
        [ "$1" = normal ] || ! marked "$source" once || continue
        order=$(marked "$source" first && echo 1 || echo 2)
        case $source in
        *.c) echo "$order $1/$(folder_of "$1")/${source%.c}" ;;
        *) echo "$order $1/$source" ;;
        esac
    done | sort -s -k 1,1 | cut -d ' ' -f 2
}

folder_of() { # PHASE
    case $1 in
    normal) echo build ;;
    *) echo "build/$1" ;;
    esac
}

# build PHASE SANITIZERS : builds what the tests named on stdin need, and then puts them on the list
build() {
    cat >"$work/$1.list"
    [ -s "$work/$1.list" ] || return 0
    echo "== building: $1"
    # shellcheck disable=SC2046 # the programs have plain names
    if make -s -j"$jobs" WERROR=-Werror BUILD="$(folder_of "$1")" SAN="$2" $(build_goals "$1"); then
        cat "$work/$1.list" >>"$work/list"
    else
        echo "the build for \"$1\" failed" | tee "$work/$1.broken"
    fi
}

# Everything for .t files, which may look at anything. TSan gets no command-line program: what has threads in
# its .t files is the conformance suite and the tests' own tools.
build_goals() { # PHASE
    if [ "$1" = tsan ] || ! grep -q '\.t$' "$work/$1.list"; then
        sed -n "s|^$1/\(build/\)|\1|p" "$work/$1.list"
        grep -q '\.t$' "$work/$1.list" && echo test-tools
    else
        echo test-programs
    fi
}

# Runs one test, "PHASE/PATH". A script never runs in two builds at the same time: it may look for what
# processes of its kind left behind. What a test says on stderr is kept for the list of failures: many run
# at once, and on the screen nobody could tell whose words they are. What it says on stdout reaches prove at
# its end: prove waits for the rest of a line that has begun, and starts no other test meanwhile. What nohup(1)
# or a shell's "&" ignored for us is not ignored for a test.
cat >"$work/one" <<'EOF'
phase=${1%%/*}
path=${1#*/}
BUILD=build
[ "$phase" = normal ] || BUILD=build/$phase
HOLDFAST=$PWD/$BUILD/holdfast
export BUILD HOLDFAST
key=$(echo "$path" | tr / _) # of a script; a program has the name of its build in it
said=$RUN_WORK/said/$(echo "$1" | tr / _)
flock -o "$RUN_WORK/locks/$key" \
    perl -e '$SIG{$_} = "DEFAULT" for qw(HUP INT QUIT); exec @ARGV or die' "./$path" \
    >"$said" 2>"$RUN_WORK/words/$(echo "$1" | tr / _)"
status=$?
# "Bail out!" would end the tests of all others, and prove would call it a success.
sed 's/^Bail out!/not ok - cannot go on:/' "$said"
rm "$said"
exit $status
EOF

mkdir "$work/tap" "$work/words" "$work/locks" "$work/said"
: >"$work/list"
: >"$work/prove"
tests_of normal | build normal ''
case $mode in all | long) tests_of asan | build asan address,undefined ;; esac
[ "$mode" != all ] || tests_of tsan threads | build tsan thread
# All builds in one go, so that none waits for the last test of the one before.
if [ -s "$work/list" ]; then
    # shellcheck disable=SC2046
    PERL_TEST_HARNESS_DUMP_TAP=$work/tap RUN_WORK=$work \
        prove -j"$tests_at_once" --timer -e "sh $work/one" $(cat "$work/list") 2>&1 </dev/null |
        tee "$work/prove"
fi

# The count. A test line counts by what it says; a file that prove finds wrong although none of its
# lines failed (it crashed, or its plan is not met) counts as one failure.
count() { # TAP...
    awk -v work="$work/" '
    FNR == 1 {
        file = FILENAME
        sub(work "tap/", "", file)
        sub("/", ": ", file)
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

# The files that failed, what prove says of each, the checks, words on stderr.
tell_failures() {
    sed -n '/^Test Summary Report/,$ p' "$work/prove" >"$work/report"
    sed -n '/(Wstat: /p' "$work/report" | while IFS= read -r line; do
        name=${line%% *}
        echo "failed: ${name%%/*}: ${name#*/}${line#"$name"}"
        awk -v name="$name" '$1 == name { mine = 1; next } /^[^ ]/ { mine = 0 }
            mine && !/^ +Failed tests?:/ && !/Non-zero exit status: 1$/' "$work/report"
        [ ! -f "$work/tap/$name" ] || failed_checks "$work/tap/$name"
        words=$work/words/$(echo "$name" | tr / _)
        [ ! -s "$words" ] || short "$words" | sed 's/^/    | /'
    done
}

find "$work/tap" -type f >"$work/taps"
# shellcheck disable=SC2046
count /dev/null $(cat "$work/taps") >"$work/counts"
wrong=$(grep -c '(Wstat: .* Failed: 0)$' "$work/prove")
broken=$(find "$work" -name '*.broken' | wc -l)
grep '^skipped: ' "$work/counts"
tell_failures
for phase in normal asan tsan; do
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
! grep -q '^Result: FAIL' "$work/prove"
