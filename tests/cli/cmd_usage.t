#!/bin/sh
# What the program says to wrong and to unusual words: one sentence, the right exit code.
. "$(dirname "$0")/tap.sh"

t holdfast
is "$code" 64 'without a command: exit 64'
is "$out" '' 'without a command: nothing on stdout'
has "$err" 'usage: holdfast' 'without a command: the help is on stderr'
t holdfast --help
is "$code" 0 '--help: exit 0'
has "$out" 'commands:' '--help lists the commands on stdout'
is "$err" '' '--help says nothing on stderr'
t holdfast help
is "$code" 0 'help: exit 0'
t holdfast --version
has "$out" 'holdfast ' '--version prints the version'
t holdfast version --json
json '.version | test("^[0-9]+[.][0-9]+[.][0-9]+$")' 'version --json'

# did you mean
t holdfast aquire x
refused 64 "did you mean 'acquire'?" 'a slip in a command'
t holdfast xyzzy
refused 64 "unknown command 'xyzzy'" 'a command like no other'
ok 'no wild guess for it' not contains "$err" 'did you mean'
t holdfast help lst
refused 64 "did you mean 'list'?" 'a slip in help'
t holdfast --stroe x list
refused 64 "did you mean '--store'?" 'a slip in a global option'
t holdfast list --jsno
refused 64 "did you mean '--json'?" 'a slip in an option'
has "$err" 'usage: holdfast list' 'with the usage of that command'
t holdfast list --store "$HOLDFAST_STORE"
refused 64 '--store goes before the command' 'a global option in the wrong place'
t holdfast list -z
refused 64 "unknown option '-z'" 'an unknown letter'

# options
t holdfast acquire --ttl
refused 64 'needs a value' 'a value is missing'
t holdfast list --json=yes
refused 64 'takes no value' 'a value too many'
t holdfast list --js
is "$code" 0 'a long option may be shortened'
t holdfast acquire --n a
is "$code" 0 'also to a single letter that is unique'
t holdfast acquire -nE7 a
is "$code" 7 'letters are bundled, the last takes the rest of the word'
t holdfast acquire -E 256 a
refused 64 '0 to 255' 'an exit code out of range'
t holdfast acquire -E -1 a
refused 64 'not a whole number' 'an exit code below 0'
t holdfast acquire -n -w 1s a
refused 64 'exclude each other' '--no-wait with --wait'
t holdfast status a --json
json '.name == "a"' 'options may follow the operand'
t holdfast status -- --json
has "$out" '--json: free' 'after -- everything is an operand'
t holdfast list a b
refused 64 "one word too many: 'b'" 'a word too many'
t holdfast release a b
refused 64 "one word too many: 'b'" 'a word too many for release'
t holdfast version x
refused 64 'one word too many' 'a word too many for version'
t holdfast repair x
refused 64 'one word too many' 'a word too many for repair'

# names
long=$(printf '%0200d' 7)
newline='a
b'
for command in acquire status; do
    t holdfast "$command" ''
    refused 64 'is empty' "$command: an empty name"
    t holdfast "$command" "${long}x"
    refused 64 'has 201 bytes' "$command: a name of 201 bytes"
    t holdfast "$command" "$newline"
    refused 64 'control character' "$command: a newline in a name"
    t holdfast "$command" "$(printf 'a\033[2J')"
    refused 64 'control character' "$command: an escape sequence in a name"
done
t holdfast acquire
refused 64 'name of the lock is missing' 'acquire without a name'
t holdfast acquire -n "$long"
is "$code" 0 'a name of 200 bytes'
t holdfast "$(printf 'a\033[2Jb')"
ok 'what is repeated in a message cannot drive the terminal' not contains "$err" "$(printf '\033')"

# ttls
for ttl in 0 0s 99ms 24h1ms 2d -1 1e3 5x s '' 1.2.3s 99999999999999999999d; do
    t holdfast acquire -n --ttl "$ttl" t
    refused 64 '--ttl' "a ttl of '$ttl'"
done
for ttl in 100ms 1 1.5s 2m 1h 24h 1d; do
    t holdfast acquire -n --ttl "$ttl" "ttl $ttl"
    is "$code" 0 "a ttl of $ttl"
done

# stores
t holdfast --store nosuch://host list
refused 64 'nosuch' 'an unknown scheme'
has "$err" 'file' 'which schemes are known'
t holdfast --store /var/lib/x list
is "$code" 64 'a store that is no URL'
: >"$tmp/plain"
t holdfast --store "file:$tmp/plain" list
ok 'a store that is a plain file is refused' [ "$code" -ne 0 ]
has "$err" 'holdfast: ' 'with a sentence'
mkdir -m 777 "$tmp/open"
t holdfast --store "file:$tmp/open" list
refused 77 "$tmp/open" 'a directory that everybody may write to'
t env HOLDFAST_STORE= "$bin" acquire -n "in the default store"
ok 'an empty HOLDFAST_STORE is the default store' test -d "$HOLDFAST_DIR"
t env -u HOLDFAST_STORE "$bin" list --names
is "$out" 'in the default store' 'and so is none'
t holdfast --store "file:$tmp/other" status --json
json ".store | contains(\"$tmp/other\")" '--store wins over HOLDFAST_STORE'

# descriptors
t sh -c '"$0" list --json >&-' "$bin"
refused 125 'could not be written' 'stdout closed'
t sh -c '"$0" help >/dev/full' "$bin"
refused 125 'could not be written' 'stdout full'
t sh -c '"$0" status --json <&- 2>&-' "$bin"
is "$code" 0 'stdin and stderr closed'
t sh -c '"$0" acquire -n closed 0<&- 2>&- && "$0" acquire -n closed 0<&- 2>&-' "$bin"
is "$code" 75 'and no file of the store takes their place'
t holdfast status closed
has "$out" 'closed: held' 'the store is whole after that'

done_testing
