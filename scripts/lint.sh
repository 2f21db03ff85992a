#!/bin/sh
# lint.sh - every rule of the house that a program can check. Prints what it finds; exit 1 then.
# `lint.sh NAME...` runs only these: format tidy rules cppcheck shell man
# shellcheck disable=SC2317 # the checks are called by name
set -u
cd "$(dirname "$0")/.." || exit 1

failed=0
flags='-std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Ibuild/gen -DHF_PLUGIN_DIR="/usr/lib/holdfast"'
jobs=$(nproc 2>/dev/null || echo 2)

check() { # NAME COMMAND... : runs it if asked for
    name=$1
    shift
    case " $wanted " in
    *" $name "* | ' all ') ;;
    *) return ;;
    esac
    if "$@"; then
        echo "lint: $name ok"
    else
        echo "lint: $name FAILED" >&2
        failed=1
    fi
}

files() { # PATTERN... : tracked files and new ones, that exist
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while IFS= read -r file; do [ -f "$file" ] && printf '%s\n' "$file"; done
}

format() {
    files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

# One file at a time and as many at once as there are cores; silent unless it finds something.
tidy() {
    files 'src/*.c' | xargs -r -P "$jobs" -n 1 sh -c '
        flags=$0
        case $1 in
        src/base/*) ;;
        *) flags="$flags -include base/base.h -include scripts/analyzer.h" ;;
        esac
        out=$(clang-tidy --quiet "$1" -- $flags 2>/dev/null) || { printf "%s\n" "$out"; exit 1; }' \
        "$flags"
}

# autoVariables: what gcc's -Wdangling-pointer does not mind is meant.
# nullPointerRedundantCheck: wrong about walks over a list by the address of its links.
cpp() {
    # shellcheck disable=SC2046 # the sources have plain names
    cppcheck --quiet --std=c11 --language=c -j "$jobs" --error-exitcode=1 --inline-suppr \
        --enable=warning,portability --suppress=missingInclude --suppress=autoVariables \
        --suppress=nullPointerRedundantCheck \
        -D__linux__ -D_GNU_SOURCE -DHF_PLUGIN_DIR='"x"' -Iinclude -Isrc -Ibuild/gen $(files 'src/*.c')
}

# Shell files by their name, and those that only say so in their first line.
shell() {
    {
        files '*.sh' '*.t' '*.bash'
        for file in $(files 'scripts/*' 'tests/*' '.ci/*' 'bench/*'); do
            head -n 1 "$file" | grep -Eq '^#!.*[/ ](ba)?sh' && printf '%s\n' "$file"
        done
    } | sort -u | xargs -r shellcheck
}

# "mdoc" and "date" styles are not ours; a page that mandoc warns about shows wrongly somewhere.
man() {
    files 'man/*.[1-8]' | xargs -r mandoc -T lint -W warning
}

wanted=${*:-all}
check format format
check rules tests/tidy.sh
check shell shell
check man man
check cppcheck cpp
check tidy tidy
exit "$failed"
