#!/bin/sh
# tidy.sh - the rules of the house that no compiler knows: which part may include which, calls that are
# not used here, length of files and functions, white space, what lies where. Prints each breach; exit 1
# if there are any.
set -u
tab=$(printf '\t')
cd "$(dirname "$0")/.." || exit 1

breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

sources() { # PATTERN... : tracked files and new ones, that exist
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# quoted FILE... : "FILE HEADER" for each include of our own
quoted() {
    awk '/^ *# *include *"/ { split($0, part, "\""); print FILENAME, part[2] }' "$@"
}

# Each folder and the folders of src/ it may include from. The public headers are for everyone.
layers() { # FILE...
    quoted "$@" | while read -r file header; do
        case $file in
        src/base/*) allowed='base' ;;
        src/core/*) allowed='base core' ;;
        src/client/registry.c) allowed='base core client stores/file' ;; # the built-in store
        src/client/*) allowed='base core client' ;;
        src/http/*) allowed='base http' ;;
        src/stores/*)
            own=${file#src/stores/}
            own=stores/${own%%/*} # and what lies in its own subfolders
            allowed="base core http $own"
            case $header in "$own"/*/*) allowed="$allowed ${header%/*}" ;; esac
            ;;
        src/dbs/*/*) allowed=${file#src/} && allowed="base dbs ${allowed%/*}" ;;
        src/dbs/*) allowed='base client dbs' ;;
        src/fence/*) allowed='base core fence' ;;
        src/idem/*) allowed='base idem' ;;
        src/outbox/*) allowed='base outbox' ;;
        src/torture/*) allowed='base torture' ;;
        src/senders/*/*) allowed=${file#src/} && allowed="base core senders ${allowed%/*}" ;;
        src/senders/*) allowed='base core client senders' ;;
        # What speaks, below what takes a lock, below what runs something under it.
        src/cli/say/*) allowed='base core cli cli/say' ;;
        src/cli/take/*) allowed='base core client cli cli/say cli/take' ;;
        src/cli/events/*) allowed='base cli cli/say cli/events' ;;
        src/cli/audit/*) allowed='base core cli cli/say cli/fence cli/audit' ;;
        src/cli/run/*) allowed='base core cli cli/say cli/take cli/events cli/audit cli/run' ;;
        src/cli/doctor/*) allowed='base core cli cli/say cli/audit cli/run cli/doctor' ;;
        src/cli/elect/*) allowed='base core cli cli/say cli/take cli/events cli/run cli/elect' ;;
        src/cli/once/*) allowed='base core client cli cli/say cli/take cli/run cli/events cli/once' ;;
        src/cli/keep/*) allowed='base core cli cli/say cli/take cli/run cli/keep' ;;
        src/cli/outbox/*) allowed='base core outbox dbs senders cli cli/say cli/take cli/events cli/outbox' ;;
        src/cli/fence/*) allowed='base dbs fence cli cli/say cli/fence' ;;
        src/cli/torture/*) allowed='base client torture cli cli/say cli/torture' ;;
        src/serve/*) allowed='base core cli cli/say serve' ;;
        # A command in a folder of its own that needs no more than that.
        src/cli/*/*) allowed=${file#src/} && allowed="base core cli cli/say ${allowed%/*}" ;;
        src/cli/cmd_serve.c) allowed='base client cli' ;;
        src/cli/*) allowed='base cli cli/say cli/take cli/audit idem' ;;
        *) continue ;;
        esac
        case " $allowed " in
        *" ${header%/*} "*) ;;
        *) echo "$file: includes \"$header\"; it may include from: $allowed" ;;
        esac
    done
}

# The parts of the embedded store from the bottom up: each may include those before it, and itself.
file_parts='step layout word view sys file errors url dir blocker floor location byte_lock map details fifo page life
ticket slot grant quick queue client sweep record_file record_sweep revocation hold acquire begun break list record identity
forget convert open audit repair store'

# file_calls FILE... : calls of what is the table's alone, from outside the part that it is of
file_calls() {
    # shellcheck disable=SC2046 # the sources have plain names
    set -- $(printf '%s\n' "$@" | grep -v '/store\.c$')
    awk '
    FILENAME ~ /operations\.h$/ {
        while (match($0, /hf__file_[a-z_]+\(/)) {
            operation[substr($0, RSTART, RLENGTH)]
            $0 = substr($0, RSTART + RLENGTH)
        }
        next
    }
    pass == 1 && /^[a-z]/ && match($0, /hf__file_[a-z_]+\(/) { own[FILENAME, substr($0, RSTART, RLENGTH)] }
    pass == 2 && /^ / {
        for (name in operation)
            if (index($0, name) && !((FILENAME, name) in own))
                printf "%s:%d: calls %s), which is for whoever has the table of operations\n", FILENAME, FNR, name
    }' src/stores/file/operations.h pass=1 "$@" pass=2 "$@"
}

# file_layers FILE... : includes among them that point upwards
file_layers() {
    quoted "$@" | awk -v parts="$file_parts" -v files="$*" '
    function part_of(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); return path }
    BEGIN {
        n = split(parts, name)
        for (i = 1; i <= n; i++) place[name[i]] = i
        n = split(files, file)
        for (i = 1; i <= n; i++)
            if (!(part_of(file[i]) in place) && part_of(file[i]) != "operations")
                print file[i] ": no part of the embedded store that tests/tidy.sh knows"
    }
    $2 ~ /^stores\/file\// && place[part_of($2)] > place[part_of($1)] {
        print $1 ": includes \"" $2 "\", which is above it: " parts
    }'
}

# Pure code has no clock, no I/O, no threads: not even their headers.
pure() {
    grep -HnE '^ *# *include *<(time|unistd|fcntl|poll|pthread|stdio|errno|signal|sys/.*)\.h>' "$@" |
        sed 's/$/   (src\/core decides and does nothing else)/'
}

# awk looks at code without comments and strings, so that a word in a sentence is no breach. Tests and
# benches are held to the length of files and functions, to six parameters, the accent and white space; the rest is
# for what is installed.
code() {
    awk -v MAX_LINES=450 -v MAX_FUNCTION=60 -v MAX_MEDIAN=15 -v MAX_PARAMETERS=6 '
    function breach(text, line) { printf "%s:%d: %s\n", FILENAME, line ? line : FNR, text }
    function installed() { return FILENAME ~ /^(src|include)\// }
    function end_of_file() {
        if (name && lines > MAX_LINES)
            printf "%s: %d lines; a file has at most %d: split it\n", name, lines, MAX_LINES
    }
    # Functions are counted by their length, so that the middle one can be found.
    function end_of_function(length_,    n) {
        if (length_ > MAX_FUNCTION)
            breach("a function of " length_ " lines; it has at most " MAX_FUNCTION, start)
        n = parameters(head)
        if (n > MAX_PARAMETERS && head !~ / hf_acquire_any\(/) # as it was promised
            breach("a function with " n " parameters; it has at most " MAX_PARAMETERS ": pass a struct", start)
        if (!installed()) return
        of_length[length_]++
        functions++
    }
    # The commas between the first bracket of a definition and the one that closes it.
    function parameters(text,    at, depth, n, c) {
        for (at = index(text, "("); at && at <= length(text); at++) {
            c = substr(text, at, 1)
            if (c == "(") depth++
            else if (c == ")" && !--depth) break
            else if (c == "," && depth == 1) n++
        }
        return n + 1
    }
    function median(    at, seen) {
        for (at = 0; functions && 2 * seen < functions; at++) seen += of_length[at]
        return at - 1
    }
    # The line without its strings, character constants and comments.
    function bare(line,    out, at) {
        if (in_comment) {
            at = index(line, "*/")
            if (!at) return ""
            line = substr(line, at + 2)
            in_comment = 0
        }
        gsub(/\\./, "", line)
        gsub(/"[^"]*"/, "\"\"", line)
        gsub(/\047[^\047]*\047/, "0", line)
        while ((at = index(line, "/*")) > 0) {
            out = substr(line, 1, at - 1)
            line = substr(line, at + 2)
            at = index(line, "*/")
            if (!at) { in_comment = 1; return out }
            line = out " " substr(line, at + 2)
        }
        sub(/\/\/.*/, "", line)
        return line
    }
    # What can be told without types of the accent that CONTRIBUTING.md describes.
    function accent(text) {
        if (text ~ /NULL [!=]= /) breach("NULL stands on the right")
        if (text ~ /[!=]= (true|false)([^A-Za-z0-9_]|$)/) breach("a boolean is not compared")
        if (text ~ /!\(*(str|mem)n?(case)?cmp\(/) breach("compared aloud: == 0")
        if (text ~ /!\(*((str|mem)r?chr|strstr|strpbrk|malloc|calloc|realloc|strn?dup|(secure_)?getenv|fopen)\(/)
            breach("compared aloud: == NULL")
        if (ended && text ~ /^ +(close|closedir|fclose|fflush|v?snprintf|unlink|unlinkat|rmdir|kill|raise|waitpid|dup2|fcntl|prctl|sigaction|sigprocmask|setenv|unsetenv)\(/)
            breach("a result that is dropped is marked: (void)")
        if (text ~ /\(void\)(pthread_|mem(cpy|move|set)\(|v?f?printf\(|f?puts\(|putchar\()/)
            breach("not marked: results of pthread_, mem and printing functions")
        if (text ~ /[^ ]/) ended = text ~ /([;{}:)]|else) *$/
    }
    FNR == 1 { end_of_file(); name = FILENAME; lines = 0; in_comment = 0; start = 0; head = "" }
    {
        lines++
        if (index($0, "\t")) breach("a tab")
        if ($0 ~ /[ \r]$/) breach("white space at the end of the line")
        if (length($0) > 100) breach("more than 100 columns")
        if ($0 ~ /[^ ]  +\*\/$/) breach("padding before the end of a comment")
        text = bare($0)
        accent(text)
        if (installed() && match(text, /(^|[^A-Za-z0-9_.>])(strcpy|strcat|strncpy|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|system|popen|signal|rand|srand|random|time|usleep|sleep|alarm|alloca|tmpnam|mktemp|getwd|setjmp|longjmp|localtime|gmtime|ctime|asctime)[ ]*\(/))
            breach("not used here: " substr(text, RSTART, RLENGTH))
        if (installed() && FILENAME !~ /^src\/base\// && FILENAME ~ /\.c$/ && text ~ /^ *# *if(def)?[ (]/)
            breach("conditional code belongs into src/base")
        if (FILENAME ~ /^src\/cli\// && FILENAME !~ /\/kill\.c$/ && match(text, /(^|[^A-Za-z0-9_.>])(kill|killpg)[ ]*\(/))
            breach("cli_kill refuses what would reach everybody; this does not")
        if (installed() && text ~ /^typedef +struct/) breach("a struct is called by its name, not by a typedef")
        # The house style opens a function with a brace of its own in the first column.
        if (text ~ /^\{ *$/) start = FNR
        else if (!start) head = text ~ /^[A-Za-z_]/ ? text : head text
        if (text ~ /^\}/ && start) {
            end_of_function(FNR - start - 1)
            start = 0
        }
    }
    END {
        end_of_file()
        if (median() > MAX_MEDIAN)
            printf "src: the middle one of all functions has %d lines; at most %d\n", median(), MAX_MEDIAN
    }' "$@"
}

# What is no C: white space only.
plain() { # FILE...
    grep -HnE '[[:blank:]]+$' "$@" | sed 's/$/   (white space at the end)/'
    for file in "$@"; do
        case $file in *.sh | *.t | *.py | *.bash | *.fish | man/*) printf '%s\n' "$file" ;; esac
    done | xargs -r grep -Hn "$tab" | sed 's/$/   (a tab)/'
}

# Other languages are held to the length of files. Two are whole on purpose: a header of C++ is installed by copying it, and a
# module of Python that is one file has one namespace, without a list of what is public. (So is src/serve/page.html, which is
# one answer.)
long_files() { # FILE...
    wc -l "$@" | awk -v max=450 '$2 != "total" && $1 > max && $2 != "bindings/cpp/holdfast.hpp" &&
        $2 != "bindings/python/holdfast/__init__.py" { print $2 ": " $1 " lines; a file has at most " max ": split it" }'
}

# What belongs at the top of the tree and in tests/. Whatever else lies there was left behind.
top='.ci .clang-format .clang-tidy .gitignore .shellcheckrc ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md
LICENSE Makefile README.md SECURITY.md bench bindings completion debian docs examples holdfast.pc.in include man
scripts src systemd tests'
# A folder of tests/ has tests in it. These are no folders, or have none.
in_tests='run.sh tidy.sh support versions'

# places WHERE NAME... : refuses names that come on stdin and are not among these
places() {
    where=$1
    shift
    sort -u | while IFS= read -r name; do
        case " $* " in
        *" $name "*) ;;
        *) echo "$where$name: does not belong here (tests/tidy.sh knows what does)" ;;
        esac
    done
}

# A plugin is found by a file `packages` or `libs`; what its build needs of Debian is in a file `apt`.
plugins() {
    sources 'src/*/*/packages' 'src/*/*/libs' 'src/serve/packages' | while IFS= read -r file; do
        [ -f "${file%/*}/apt" ] || echo "$file: no file apt beside it, so scripts/plugins.sh does not know the plugin"
    done
}

# Files that nobody reads: of bytes instead of text, or too long.
MAX_KIB=200
text() { # FILE...
    LC_ALL=C grep -LI '' "$@" | while IFS= read -r file; do
        [ ! -s "$file" ] || echo "$file: a binary file"
    done
    find "$@" -size +${MAX_KIB}k | sed "s/\$/: more than $MAX_KIB KiB/"
}

{
    # shellcheck disable=SC2086 # lists of words
    sources | cut -d / -f 1 | places '' $top
    # shellcheck disable=SC2046,SC2086
    sources 'tests/*' | cut -d / -f 2 | places tests/ $in_tests $(sources 'tests/*/*.t' 'tests/*/test_*.c' | cut -d / -f 2 | sort -u)
    plugins
    # shellcheck disable=SC2046 # the sources have plain names
    set -- $(sources)
    [ "$#" -eq 0 ] || text "$@"
    # shellcheck disable=SC2046
    set -- $(sources 'src/*.c' 'src/*.h')
    [ "$#" -eq 0 ] || layers "$@"
    # shellcheck disable=SC2046
    set -- $(sources 'src/stores/file/*.c' 'src/stores/file/*.h')
    [ "$#" -eq 0 ] || file_layers "$@"
    [ ! -f src/stores/file/operations.h ] || file_calls "$@"
    # shellcheck disable=SC2046
    set -- $(sources 'src/core/*.c' 'src/core/*.h')
    [ "$#" -eq 0 ] || pure "$@"
    # shellcheck disable=SC2046
    set -- $(sources 'include/*.h' 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c' 'bench/*.h')
    [ "$#" -eq 0 ] || code "$@"
    # shellcheck disable=SC2046
    set -- $(sources '*.sh' '*.t' '*.md' '*.py' '*.lua' 'man/*' 'completion/*' 'scripts/*')
    [ "$#" -eq 0 ] || plain "$@"
    # shellcheck disable=SC2046
    set -- $(sources '*.cc' '*.hpp' '*.py' '*.go' '*.js' '*.ts' '*.sh' '*.t' '*.sql' '*.lua')
    [ "$#" -eq 0 ] || long_files "$@"
} >"$breaches"

[ -s "$breaches" ] || exit 0
cat "$breaches"
exit 1
