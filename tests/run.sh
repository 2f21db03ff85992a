#!/bin/sh
# run.sh [HOW] [WHICH] - builds and runs the tests; in the end it tells what failed, and the last line counts.
#
# HOW:   all      (the default without WHICH) in the normal build; and under ASan+UBSan the programs, the
#                 conformance suite over two stores, and what a store makes of hostile answers
#        quick    (the default with WHICH) in the normal build only
#        check    what needs no server, in the normal build: units, rules of the tree, file store, commands
#        long     what takes minutes, in the normal build; under ASan+UBSan what `all` leaves out; and what has
#                 threads under TSan
# WHICH: a folder of tests/ (redis), or a part of the paths of the tests that are meant (redis/queue)
#
# What it runs it finds: the programs of the Makefile (tests/*/test_*.c) and every tests/*/*.t. Marks in the
# first lines of a file say more about it:
#
#   run: long        it takes minutes: only with `long`, or when it is asked for by its path
#   run: also long   with `long` again, and then it may take minutes: HOLDFAST_LONG=1 tells it; not with `check`
#   run: once        it does not depend on how holdfast was built: not again under the sanitizers
#   run: threads     it has threads: with `long` under TSan too
#   run: late asan   a program that takes much longer under ASan, by its many processes: there only with `long`
#   run: slow        it takes many seconds of the processor: not with `check`
#   run: first       it takes longer than most, so it begins before them
#
# With TESTS_AGAIN=1 a script that failed beside others is run once more, by itself, and only that counts; what
# failed at first is told all the same. A machine that did not let it run for a second costs a test its timing.
# It is no excuse for programs, for what the sanitizers find, and where two held a lock or an update was lost:
# what is found once is found.
#
# A test learns the build it is to look at from BUILD (a folder) and HOLDFAST (the program). With
# CI=true a test that was skipped counts as a failure. TESTS_AT_ONCE says how many run at the same time.
# TESTS_EAGER=1: each begins at once, however busy the machine is.
# TESTS_LIMIT_S: after that many seconds a test is taken for one that hangs, and ended (SIGALRM); 1500 by default.
# TESTS_TIMES is a file for what each test took: user and system time, with that of all it waited for (what
# prove --timer tells of one is also of those beside it).
set -u
cd "$(dirname "$0")/.." || exit 1

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

jobs=$(nproc 2>/dev/null || echo 2)
no_server='tests/unit/* tests/file/* tests/fence/test_* tests/cli/* tests/tools/tree.t tests/conform/file*.t'
# Where the sanitizers find what they are there for; the other scripts mostly start servers.
asan_soon='tests/*/test_* tests/conform/file*.t tests/conform/redis.t tests/*/faults.t tests/*/fuzz*.t'
# What a check says that is about safety.
unsafe='overlap|no two|excludes|tokens|nothing was lost|nothing lost|alive beside|twice|more than'
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
[ "$mode" = long ] || export FUZZ_RUNS="${FUZZ_RUNS:-20000}" # a tenth
# Tests wait for servers and clocks more than they compute, but must not wait for each other: many at once, and each
# begins when a processor is idle. Without servers more of them fit beside each other.
tests_at_once=${TESTS_AT_ONCE:-$(($([ "$mode" = check ] && echo 14 || echo 7) * jobs))}

export TESTS_LIMIT_S="${TESTS_LIMIT_S:-1500}"

MARK_LINES=12 # a mark further down is a word of the test itself
# PATH<TAB>LINES : each test that there is, and its lines with marks
list_marks() {
    set --
    for source in tests/*/test_*.c tests/*/*.t; do
        [ ! -f "$source" ] || set -- "$@" "$source"
    done
    awk -v lines=$MARK_LINES 'FNR == 1 && NR > 1 { print file "\t" marks; marks = "" }
        { file = FILENAME }
        FNR <= lines && /run: / { marks = marks " " $0 }
        END { print file "\t" marks }' "$@" /dev/null
}

marked() { # MARK : is the test at hand?
    case $marks in *"run: $1"*) ;; *) return 1 ;; esac
}

wanted() { # PATH PHASE : is it asked for?
    if [ -d "tests/${which:-.}" ]; then
        case $1 in "tests/${which:+${which%/}/}"*) ;; *) return 1 ;; esac
    else
        case $1 in *"$which"*) [ "$mode" = long ] || return 0 ;; *) return 1 ;; esac
    fi
    case $mode-$2 in
    long-tsan) true ;; # those that are marked for it
    long-asan) marked 'late asan' || { ! marked long && ! marked 'also long' && ! fits "$1" "$asan_soon"; } ;;
    long-*) marked long || marked 'also long' ;;
    check-*) ! marked long && ! marked 'also long' && ! marked slow && fits "$1" "$no_server" ;;
    all-asan) ! marked long && { [ -n "$which" ] || { ! marked 'late asan' && fits "$1" "$asan_soon"; }; } ;;
    *) ! marked long ;;
    esac
}

fits() { # PATH PATTERNS
    # shellcheck disable=SC2254 # they are patterns
    for pattern in $2; do
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# tests_of PHASE [MARK] : "PLACE PHASE/PATH" of the programs and scripts to run there. The place, 0 to 1, is 0 for the
# slow ones, which begin first. The others are spread evenly, by the golden ratio, so that those of one folder and one
# build do not run all at once: some compute, others mostly wait.
tests_of() {
    while IFS="$tab" read -r source marks; do
        wanted "$source" "$1" || continue
        [ -z "${2-}" ] || marked "$2" || continue
        [ "$1" = normal ] || ! marked once || continue
        order=$(marked first && echo 1 || echo 2)
        case $source in
        *.c) echo "$order $1/$(folder_of "$1")/${source%.c}" ;;
        *) echo "$order $1/$source" ;;
        esac
    done <"$work/marks" | awk '{ line[NR] = $2; first[NR] = $1 == 1 }
        END { for (i = 1; i <= NR; i++) printf "%.4f %s\n", first[i] ? 0 : i * 0.618034 % 1, line[i] }'
}

folder_of() { # PHASE
    case $1 in
    normal) echo build ;;
    *) echo "build/$1" ;;
    esac
}

# build PHASE SANITIZERS : builds what the tests named on stdin need, and then puts them on the list. With sanitizers
# to compile takes longer than to run: half as long with what a trace of the stack needs and no more. What the compiler
# warns of is said by the normal build.
build() {
    cat >"$work/$1.list"
    [ -s "$work/$1.list" ] || return 0
    echo "== building: $1"
    # shellcheck disable=SC2046 # the programs have plain names
    if make -s -j"$jobs" WERROR="$([ -n "$2" ] && echo -w || echo -Werror)" BUILD="$(folder_of "$1")" SAN="$2" \
        ${2:+"CFLAGS=-O1 -g1"} $(build_goals "$1"); then
        cat "$work/$1.list" >>"$work/places"
    else
        echo "the build for \"$1\" failed" | tee "$work/$1.broken"
    fi
}

# Everything for .t files, which may look at anything. TSan gets no command-line program: what has threads in
# its .t files is the conformance suite and the tests' own tools.
build_goals() { # PHASE
    if [ "$1" = tsan ] || ! grep -q '\.t$' "$work/$1.list"; then
        sed -n "s|^[^ ]* $1/\(build/\)|\1|p" "$work/$1.list"
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
# What is long is so in the normal build; the sanitizers see it in its short form.
[ "$phase" = normal ] || { BUILD=build/$phase && unset HOLDFAST_LONG; }
HOLDFAST=$PWD/$BUILD/holdfast
export BUILD HOLDFAST
key=$(echo "$path" | tr / _) # of a script; a program has the name of its build in it
# Tests begin one after the other, each when a sixth of the machine was idle for a moment, or after some seconds.
# What runs with a lower priority gives way, and counts as idle.
ticks() { # of all processors, and those of them that were idle
    read -r _ user nice system idle iowait _ </proc/stat
    echo "$((user + nice + system + idle + iowait)) $((nice + idle + iowait))"
}
begin() {
    tries=0
    while [ $((tries += 1)) -le 50 ]; do
        before=$(ticks) && sleep 0.1 && after=$(ticks)
        [ $((6 * (${after#* } - ${before#* }))) -lt $((${after% *} - ${before% *})) ] || break
    done
}
if [ -z "${TESTS_EAGER-}" ]; then
    exec 9>"$RUN_WORK/locks/begin"
    flock 9
    begin
    exec 9>&-
fi
said=$RUN_WORK/said/$(echo "$1" | tr / _)
flock -o "$RUN_WORK/locks/$key" \
    perl -e '$SIG{$_} = "DEFAULT" for qw(HUP INT QUIT ALRM); alarm shift; exec @ARGV or die' "$TESTS_LIMIT_S" "./$path" \
    >"$said" 2>"$RUN_WORK/words/$(echo "$1" | tr / _)"
status=$?
if [ -n "${TESTS_TIMES-}" ]; then
    times >"$said.times" # not in a pipe: of this shell
    echo "$(tail -n 1 "$said.times") $1" >>"$TESTS_TIMES"
fi
# "Bail out!" would end the tests of all others, and prove would call it a success.
sed 's/^Bail out!/not ok - cannot go on:/' "$said"
rm -f "$said" "$said.times"
exit $status
EOF

mkdir "$work/tap" "$work/words" "$work/locks" "$work/said"
: >"$work/places"
: >"$work/prove"
tab=$(printf '\t')
list_marks >"$work/marks"
tests_of normal | build normal ''
case $mode in all | long) tests_of asan | build asan address,undefined ;; esac
[ "$mode" != long ] || tests_of tsan threads | build tsan thread
# prove_all LIST OUTPUT AT_ONCE : all builds in one go, so that none waits for the last test of the one before
prove_all() {
    # shellcheck disable=SC2046
    PERL_TEST_HARNESS_DUMP_TAP=$work/tap RUN_WORK=$work \
        prove -j"$3" --timer -e "sh $work/one" $(cat "$1") 2>&1 </dev/null | tee "$2"
}

sort -s -n -k 1,1 "$work/places" | cut -d ' ' -f 2 >"$work/list"
[ ! -s "$work/list" ] || prove_all "$work/list" "$work/prove" "$tests_at_once"

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

# What prove says of the files that failed.
report() { # OUTPUT
    sed -n '/^Test Summary Report/,/^Files=/ p' "$1" | sed '1,2d; $d'
}

words_of() { # NAME : the file with what it said on stderr
    echo "$work/words/$(echo "$1" | tr / _)"
}

# The files of a report, what prove says of each, the checks, words on stderr.
tell_failures() { # HOW
    sed -n '/(Wstat: /p' "$work/report" | while IFS= read -r line; do
        name=${line%% *}
        echo "$1: ${name%%/*}: ${name#*/}${line#"$name"}"
        awk -v name="$name" '$1 == name { mine = 1; next } /^[^ ]/ { mine = 0 }
            mine && !/^ +Failed tests?:/ && !/Non-zero exit status: 1$/' "$work/report"
        [ ! -f "$work/tap/$name" ] || failed_checks "$work/tap/$name"
        words=$(words_of "$name")
        [ ! -s "$words" ] || short "$words" | sed 's/^/    | /'
    done
}

may_be_chance() { # NAME
    case $1 in *.t) ;; *) return 1 ;; esac
    ! cat "$work/tap/$1" "$(words_of "$1")" 2>/dev/null | grep -Eq "^not ok.*($unsafe)|Sanitizer|runtime error:"
}

# of_again YES : the part of the first report that is about the tests that run again, or (0) the rest of it
of_again() {
    awk -v yes="$1" 'NR == FNR { again[$1]; next } /^[^ ]/ { mine = $1 in again } mine == yes' \
        "$work/again" "$work/first"
}

report "$work/prove" >"$work/report"
: >"$work/again"
if [ -n "${TESTS_AGAIN-}" ]; then
    sed -n 's/^\([^ ]*\) .*(Wstat: .*/\1/p' "$work/report" | while read -r name; do
        ! may_be_chance "$name" || echo "$name"
    done >"$work/again"
fi
if [ -s "$work/again" ]; then
    cp "$work/report" "$work/first"
    of_again 1 >"$work/report"
    tell_failures 'failed beside others' | sed 's/^  not ok/  was not ok:/'
    echo '== again, by themselves'
    prove_all "$work/again" "$work/prove.again" 1
    { of_again 0 && report "$work/prove.again"; } >"$work/report"
fi

find "$work/tap" -type f >"$work/taps"
# shellcheck disable=SC2046
count /dev/null $(cat "$work/taps") >"$work/counts"
wrong=$(grep -c '(Wstat: .* Failed: 0)$' "$work/report")
broken=$(find "$work" -name '*.broken' | wc -l)
grep '^skipped: ' "$work/counts"
tell_failures failed
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
if [ -s "$work/again" ]; then
    ! grep -q '^Result: FAIL' "$work/prove.again" && ! grep -q '(Wstat: ' "$work/report"
else
    ! grep -q '^Result: FAIL' "$work/prove"
fi
