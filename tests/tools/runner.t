#!/bin/bash
# run.sh on a small tree of its own: what it counts, and what it tells of what failed.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"

unset CI TESTS_AGAIN
export TESTS_EAGER=1
tree=$dir/tree
mkdir -p "$tree/tests/x"
cp "$root/tests/run.sh" "$tree/tests/"
cd "$tree" || exit 1
printf 'test-programs:\n\t@test ! -e no-$(SAN)\n' >Makefile
script() { # NAME [FOLDER] : stdin is what it does
    local file=tests/${2-x}/$1.t
    mkdir -p "${file%/*}"
    { echo '#!/bin/sh' && cat; } >"$file"
    chmod +x "$file"
}
run() {
    answer=$(tests/run.sh "$@" 2>&1)
    status=$?
    last=$(tail -n 1 <<<"$answer")
}

script good <<'END'
echo noise >&2
echo '1..2'
echo 'ok 1 - yes'
echo 'ok 2 # SKIP not here'
END
run quick
is "$status: $last" '0: 1 passed, 0 failed, 1 skipped' 'what passed and what was skipped is counted'
like "$answer" '*skipped: normal: tests/x/good.t: ok 2*' 'what was skipped is named'
[[ $answer != *failed:* && $answer != *noise* ]]
ok $? 'and nothing is told of what went well'

script bad <<'END'
echo 'the last words' >&2
echo '1..3'
echo 'ok 1 - before'
echo 'not ok 2 - the sky is green'
echo '#   got:    blue'
echo 'ok 3 - after'
echo '# of no interest'
exit 1
END
script dead <<'END'
echo '1..2'
echo 'ok 1 - so far'
kill -9 $$
END
run quick
is "$status: $last" '1: 4 passed, 2 failed, 1 skipped' 'a check and a file that failed are counted'
like "$answer" '*failed: normal: tests/x/bad.t *' 'the file and the build are named'
like "$answer" '*failed: *  not ok 2 - the sky is green*#   got:    blue*' 'the check too, with its words'
like "$answer" '*failed: *| the last words*' 'and what was said on stderr'
[[ ${answer#*failed: normal} != *'of no interest'* && $answer != *'failed: normal: tests/x/good'* ]]
ok $? 'but no more'
like "$answer" '*failed: normal: tests/x/dead.t *Bad plan*' 'a file that died is named, and how'
run bad
is "$last" '2 passed, 1 failed, 0 skipped' 'a pattern chooses'

script slow <<'END'
# run: long
echo '1..1'
echo 'ok 1 - after a while'
END
run quick
is "$last" '4 passed, 2 failed, 1 skipped' 'what takes minutes is left out'
run long
like "$answer" '*normal/tests/x/slow.t *' 'and runs when it is asked for'
like "$answer" '*asan/tests/x/bad.t *' 'together with what all leaves out under the sanitizers'
[[ $answer != *normal/tests/x/bad.t* && $answer != *asan/tests/x/slow.t* ]]
ok $? 'and nothing else'
run slow
is "$last" '1 passed, 0 failed, 0 skipped' 'or by its name'
run x
is "$last" '4 passed, 2 failed, 1 skipped' 'but not when its folder is asked for'
run long x
like "$answer" '*normal/tests/x/slow.t *' 'unless for what is long in it'

script both y <<'END'
# run: also long
echo '1..1'
echo "ok 1 - ${HOLDFAST_LONG-short}"
[ -n "${HOLDFAST_LONG-}" ] || exit 3
END
run y
like "$answer" '*failed: normal: tests/y/both.t *exited 3*' 'what is also long runs in its short form'
run long y
is "$status: $last" '0: 1 passed, 0 failed, 0 skipped' 'and again in its long one'
script words y <<'END'
echo '1..1'
echo 'ok 1 - yes'










cat <<TEXT >/dev/null
# run: long
TEXT
END
run y
like "$last" '2 passed, *' 'a mark further down is none'
rm -r tests/y

script alone unit <<'END'
echo '1..1'
echo 'ok 1 - yes'
END
run check
is "$status: $last" '0: 1 passed, 0 failed, 0 skipped' 'the check takes what needs no server'
script busy unit <<'END'
# run: slow
echo '1..1'
echo 'not ok 1 - after a while'
END
run check
is "$status: $last" '0: 1 passed, 0 failed, 0 skipped' 'but not what is slow'
rm tests/unit/busy.t
script first unit <<'END'
# run: first
echo '1..1'
echo 'ok 1 - yes'
END
TESTS_AT_ONCE=1 run unit
like "$answer" '*unit/first.t *unit/alone.t *' 'what is marked as slow begins first'
rm -r tests/unit

script a_stuck <<'END'
echo 'Bail out! no server'
exit 1
END
TESTS_AT_ONCE=1 run quick
like "$status: $last" '1: 4 passed, *' 'a test that bails out does not stop the others'
like "$answer" '*failed: *not ok - cannot go on: no server*' 'and has failed'
rm tests/x/a_stuck.t

rm tests/x/bad.t tests/x/dead.t tests/x/slow.t
run
is "$status: $last" '0: 1 passed, 0 failed, 1 skipped' 'a script runs in the normal build'
mv tests/x/good.t tests/x/faults.t
touch no-address,undefined
run
is "$status: $last" '1: 1 passed, 1 failed, 1 skipped' 'a build that failed is a failure'
like "$answer" '*failed: asan: the build*' 'and named'
rm no-address,undefined
run
is "$status: $last" '0: 2 passed, 0 failed, 2 skipped' 'else it runs in both builds, if the sanitizers are to see it'
sed -i '2i # run: late asan' tests/x/faults.t
run
is "$status: $last" '0: 1 passed, 0 failed, 1 skipped' 'but not there if that takes too long'
run long
like "$answer" '*asan/tests/x/faults.t *' 'then with what is long'
mv tests/x/faults.t tests/x/good.t
script apart <<'END'
echo '1..1'
mkdir busy && sleep 0.5 && rmdir busy && echo "ok 1 - in $BUILD"
END
run all apart
is "$status: $last" '0: 2 passed, 0 failed, 0 skipped' 'but not in both at the same time'

# A second try, by itself.
script luck <<'END'
echo '1..2'
echo 'ok 1 - before'
mkdir tried 2>/dev/null && echo 'not ok 2 - too late' && echo '#   by a second' && exit 1
echo 'ok 2 - in time'
END
run luck
is "$status: $last" '1: 1 passed, 1 failed, 0 skipped' 'a failure is a failure'
rmdir tried
TESTS_AGAIN=1 run luck
is "$status: $last" '0: 2 passed, 0 failed, 0 skipped' 'with TESTS_AGAIN what passes by itself has passed'
like "$answer" '*failed beside others: normal: tests/x/luck.t *was not ok: 2 - too late*by a second*again, by themselves*' \
    'and what failed at first is told'
script luck <<'END'
echo '1..1'
mkdir tried 2>/dev/null && echo '==1==ERROR: AddressSanitizer: heap-use-after-free' >&2 && exit 1
echo 'ok 1 - yes'
END
rmdir tried
TESTS_AGAIN=1 run luck
like "$status: $last" '1: *' 'what a sanitizer finds has no second try'
script luck <<'END'
echo '1..1'
mkdir tried 2>/dev/null && echo 'not ok 1 - threads_never_overlap' && exit 1
echo 'ok 1 - threads_never_overlap'
END
rmdir tried
TESTS_AGAIN=1 run luck
is "$status: $last" '1: 0 passed, 1 failed, 0 skipped' 'nor has that two held a lock'
script luck <<'END'
echo '1..2'
echo 'not ok 1 - always'
echo 'ok 2 - yes'
END
script fault <<'END'
echo '1..1'
echo 'ok 1 - yes'
kill -9 $$
END
TESTS_AGAIN=1 run quick x
like "$status: $last" '1: * 2 failed, 1 skipped' 'what fails again has failed, and is counted once'
rm tests/x/luck.t tests/x/fault.t

script hangs <<'END'
echo '1..2'
echo 'ok 1 - so far'
sleep 60
echo 'ok 2 - for ever'
END
TESTS_LIMIT_S=1 run hangs
like "$status: $last" '1: 1 passed, 1 failed, *' 'one that hangs is ended, and has failed'
rm tests/x/hangs.t

CI=true run good
is "$status" 1 'in continuous integration, skipping is failing'
done_testing
