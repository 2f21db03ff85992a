#!/bin/bash
# tidy.sh on a small tree of its own: what it lets pass, and what was left behind.
# run: once
set -u
. "$(dirname "$0")/../support/stage.sh"

tree=$dir/tree
mkdir -p "$tree/tests/unit" "$tree/src/base"
cp "$root/tests/tidy.sh" "$tree/tests/"
cd "$tree" || exit 1
git init -q . || skip_all 'git is not installed'
printf 'build/\n' >.gitignore
printf 'int x;\n' >src/base/x.c
: >tests/unit/empty.t
mkdir build && printf '\0\1' >build/x.o
git add .gitignore src tests

tidy() { answer=$(tests/tidy.sh 2>&1); }
tidy
ok $? 'a tidy tree passes; what git ignores does not count'

refused() { # FILE DESCRIPTION : names the file
    tidy
    is $? 1 "$2 is refused"
    like "$answer" "*$1:*" 'and named'
    rm -rf "$1"
}
for name in crash-0123 leak-0123 slow-unit-0123 core; do
    echo x >$name
    refused $name "$name at the top"
done
echo x >tests/crash-0123
refused tests/crash-0123 'one in tests/'
mkdir tests/corpus && echo x >tests/corpus/seed
refused tests/corpus 'a folder without a test'
mkdir tests/newstore && : >tests/newstore/basic.t
tidy
ok $? 'one with a test needs no permission'
mkdir -p src/stores/newstore && : >src/stores/newstore/libs
refused src/stores/newstore/libs 'a plugin without a file apt'
rm -r tests/newstore src/stores
printf 'a\0b' >src/base/blob
refused src/base/blob 'a binary file'
head -c 204801 /dev/zero | tr '\0' 'x' >src/base/big.txt
refused src/base/big.txt 'a file that is too long'
printf '/* %0100d */\n' 0 >src/base/wide.h
refused src/base/wide.h 'a comment wider than 100 columns'
printf '%0.sx\n' $(seq 451) >src/base/y.py
refused src/base/y.py 'a file of another language that is too long'
printf 'x \n' >src/base/y.sh
refused src/base/y.sh 'white space at the end'
tidy
ok $? 'and without them it is tidy again'

# The embedded store's parts include those below them only.
mkdir -p src/stores/file
echo '#include "stores/file/page.h"' >src/stores/file/slot.c
tidy
ok $? 'a part may include one below it'
echo '#include "stores/file/queue.h"' >src/stores/file/page.c
refused src/stores/file/page.c 'one that includes a part above it'
: >src/stores/file/other.c
refused src/stores/file/other.c 'a part of no known height'
echo 'int hf__file_release(void);' >src/stores/file/operations.h
printf 'int hf__file_release(void)\n{\n    return 0;\n}\n' >src/stores/file/hold.c
tidy
ok $? 'a part may have an operation of the table'
printf 'int take_back(void)\n{\n    return hf__file_release();\n}\n' >src/stores/file/acquire.c
refused src/stores/file/acquire.c 'one that calls another part'"'"'s operation'
rm -r src/stores

# So do the commands; a new one with a folder of its own needs no line for that.
mkdir -p src/cli/new
printf '#include "%s"\n' base/base.h core/wait.h cli/cli.h cli/say/show.h cli/new/new.h >src/cli/new/cmd_new.c
tidy
ok $? 'a new command may include what is below it, and its own folder'
echo '#include "cli/once/once.h"' >src/cli/new/cmd_new.c
refused src/cli/new/cmd_new.c 'one that includes another command'
rm -r src/cli

# Lengths: at the limit it passes, one more does not.
function_of() { # LINES PARAMETERS : on stdout
    printf 'void f(int a'
    printf ',\n       void (*b)(int, int)%.0s' $(seq 2 "$2")
    printf ')\n{\n'
    yes '    g();' | head -n "$1"
    printf '}\n'
}
exceeds() { # DESCRIPTION WORDS : what src/base/y.c holds, and what is said of it
    tidy
    is $? 1 "$1 is refused"
    like "$answer" "$2" 'and says how many there may be'
    rm src/base/y.c
}
short=$(for _ in 1 2 3; do function_of 1 1; done)
{ echo "$short" && function_of 60 6; } >src/base/y.c
tidy
ok $? 'a function of 60 lines and six parameters passes'
{ echo "$short" && function_of 61 1; } >src/base/y.c
exceeds 'one of 61 lines' '*src/base/y.c:*a function of 61 lines; it has at most 60*'
{ function_of 1 13; } >src/base/y.c
exceeds 'one with many parameters' '*src/base/y.c:*parameters; it has at most *'
mkdir -p bench
{ function_of 1 13; } >bench/y.c
tidy
is $? 1 'one of a bench, too'
like "$answer" '*bench/y.c:*parameters; it has at most *' 'and says how many there may be'
rm bench/y.c
{ function_of 16 1; } >src/base/y.c
exceeds 'a middle length of 16 lines' '*the middle one of all functions has 16 lines; at most 15*'
yes 'int f(void);' | head -n 450 >src/base/y.c
tidy
ok $? 'a file of 450 lines passes'
echo 'int f(void);' >>src/base/y.c
exceeds 'one of 451' '*src/base/y.c: 451 lines; a file has at most 450*'
done_testing
