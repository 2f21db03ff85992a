#!/bin/bash
# What the program says to wrong and to unusual words: one sentence, the right exit code.
set -u
. "$(dirname "$0")/cmd.sh"

run holdfast
is "$rc" 64 'without a command: exit 64'
is "$out" '' 'without a command: nothing on stdout'
has "$err" 'usage: holdfast' 'without a command: the help is on stderr'
run holdfast --help
is "$rc" 0 '--help: exit 0'
has "$out" 'commands:' '--help lists the commands on stdout'
is "$err" '' '--help says nothing on stderr'
run holdfast help
is "$rc" 0 'help: exit 0'
run holdfast --version
has "$out" 'holdfast ' '--version prints the version'
run holdfast version --json
json '.version | test("^[0-9]+[.][0-9]+[.][0-9]+$")' 'version --json'

# did you mean
run holdfast aquire x
refused 64 "did you mean \"acquire\"?" 'a slip in a command'
run holdfast xyzzy
refused 64 "unknown command \"xyzzy\"" 'a command like no other'
check 'no wild guess for it' not contains "$err" 'did you mean'
run holdfast help lst
refused 64 "did you mean \"list\"?" 'a slip in help'
run holdfast fence wirte
refused 64 "unknown fence command \"wirte\"; did you mean \"write\"?" 'a slip in a command below another'
run holdfast outbox rly
refused 64 "did you mean \"relay\"?" 'of outbox, too'
run holdfast idem sqll
refused 64 "did you mean \"sql\"?" 'and of idem'
run holdfast outbox 'redis://me:s3cret@h'
refused 64 "\"holdfast help outbox\" lists them" 'one like no other'
check 'its password is not repeated' not contains "$err" s3cret
run holdfast outbox --jsno
refused 64 'unknown option' 'an option instead of it'
run holdfast idem
refused 64 'subcommand is missing' 'none'
run holdfast --stroe x list
refused 64 "did you mean \"--store\"?" 'a slip in a global option'
run holdfast list --jsno
refused 64 "did you mean \"--json\"?" 'a slip in an option'
has "$err" 'usage: holdfast list' 'with the usage of that command'
run holdfast list --store "$HOLDFAST_STORE"
refused 64 '--store goes before the command' 'a global option in the wrong place'
run holdfast list -z
refused 64 "unknown option \"-z\"" 'an unknown letter'

# options
run holdfast acquire --ttl
refused 64 'needs a value' 'a value is missing'
run holdfast list --json=yes
refused 64 'takes no value' 'a value too many'
run holdfast list --js
is "$rc" 0 'a long option may be shortened'
run holdfast acquire --n a
is "$rc" 0 'also to a single letter that is unique'
run holdfast acquire -nE7 a
is "$rc" 7 'letters are bundled, the last takes the rest of the word'
run holdfast acquire -E 256 a
refused 64 '0 to 255' 'an exit code out of range'
run holdfast acquire -E -1 a
refused 64 'not a whole number' 'an exit code below 0'
run holdfast acquire -n -w 1s a
refused 64 'cannot be used together' '--no-wait with --wait'
run holdfast status a --json
json '.name == "a"' 'options may follow the operand'
run holdfast status -- --json
has "$out" '--json: free' 'after -- everything is an operand'
run holdfast list a b
refused 64 "unexpected word \"b\"" 'a word too many'
run holdfast release a b
refused 64 "unexpected word \"b\"" 'a word too many for release'
run holdfast version x
refused 64 'unexpected word' 'a word too many for version'
run holdfast repair x
refused 64 'unexpected word' 'a word too many for repair'

# names
long=$(printf '%0200d' 7)
newline='a
b'
for command in acquire status; do
    run holdfast "$command" ''
    refused 64 'is empty' "$command: an empty name"
    run holdfast "$command" "${long}x"
    refused 64 'has 201 bytes' "$command: a name of 201 bytes"
    run holdfast "$command" "$newline"
    refused 64 'control character' "$command: a newline in a name"
    run holdfast "$command" "$(printf 'a\033[2J')"
    refused 64 'control character' "$command: an escape sequence in a name"
done
run holdfast acquire
refused 64 'name of the lock is missing' 'acquire without a name'
run holdfast acquire -n "$long"
is "$rc" 0 'a name of 200 bytes'
run holdfast "$(printf 'a\033[2Jb')"
check 'what is repeated in a message cannot drive the terminal' not contains "$err" "$(printf '\033')"

# ttls
for ttl in 0 0s 99ms 24h1ms 2d -1 1e3 5x s '' 1.2.3s 99999999999999999999d; do
    run holdfast acquire -n --ttl "$ttl" t
    refused 64 '--ttl' "a ttl of '$ttl'"
done
for ttl in 100ms 1 1.5s 2m 1h 24h 1d; do
    run holdfast acquire -n --ttl "$ttl" "ttl $ttl"
    is "$rc" 0 "a ttl of $ttl"
done

# stores
run holdfast --store nosuch://host list
refused 64 'nosuch' 'an unknown scheme'
has "$err" 'file' 'which schemes are known'
run holdfast --store /var/lib/x list
is "$rc" 64 'a store that is no URL'
: >"$dir/plain"
run holdfast --store "file:$dir/plain" list
check 'a store that is a plain file is refused' [ "$rc" -ne 0 ]
has "$err" 'holdfast: ' 'with a sentence'
mkdir -m 777 "$dir/open"
run holdfast --store "file:$dir/open" list
refused 77 "$dir/open" 'a directory that everybody may write to'
run env HOLDFAST_STORE= "$hf" acquire -n "in the default store"
check 'an empty HOLDFAST_STORE is the default store' test -d "$HOLDFAST_DIR"
run env -u HOLDFAST_STORE "$hf" list --names
is "$out" 'in the default store' 'and so is none'
run holdfast --store "file:$dir/other" status --json
json ".store | contains(\"$dir/other\")" '--store wins over HOLDFAST_STORE'

# descriptors
run sh -c '"$0" list --json >&-' "$hf"
refused 125 'could not be written' 'stdout closed'
run sh -c '"$0" help >/dev/full' "$hf"
refused 125 'could not be written' 'stdout full'
run sh -c '"$0" status --json <&- 2>&-' "$hf"
is "$rc" 0 'stdin and stderr closed'
# Without care, the store's files would be opened under these numbers and messages written into them.
for closed in '0<&-' '2>&-' '0<&- 2>&-' '1>&- 2>&-' '0<&- 1>&- 2>&-'; do
    for words in 'acquire -n closed' 'acquire -n closed' 'renew' 'status closed' 'list'; do
        run sh -c "HOLDFAST_NAME=closed HOLDFAST_TOKEN=1 HOLDFAST_OWNER=$(printf '%032d' 1) \
            '$hf' $words $closed"
    done
    run holdfast list --names
    is "$rc$err" 0 "the store is whole after use with $closed"
done
run sh -c '"$0" run -n passed -- sh -c "[ ! -e /proc/self/fd/0 ]" 0<&-' "$hf"
is "$rc" 0 'a command does not see what filled the gap'

done_testing
