#!/bin/bash
# A password in a store's URL is seen by nobody: not in ps, not in what is said, not by the command.
set -u
. "$(dirname "$0")/cmd.sh"

# A store that grants everything, so that URLs with passwords open without a server.
export HOLDFAST_STORE_PATH=${BUILD:-build}/tests/plugins
case $HOLDFAST_STORE_PATH in /*) ;; *) HOLDFAST_STORE_PATH=$PWD/$HOLDFAST_STORE_PATH ;; esac
unset HOLDFAST_STORE
url='tiny://user:Zq7x%40Wv9k@host:1/x?a=b&password=Jp3mHy6t'
pieces='Zq7x|Wv9k|Jp3m|Hy6t'

# quiet TEXT DESCRIPTION : no piece of the password is in the text
quiet() {
    ! printf '%s\n' "$1" | grep -E "$pieces" >"$dir/seen"
    ok $? "$2"
    [ ! -s "$dir/seen" ] || diag "$(cat "$dir/seen")"
}

# of the program and all that it started
command_lines() { # PID
    local child
    tr '\0' ' ' <"/proc/$1/cmdline"
    echo
    for child in $(pgrep -P "$1"); do
        command_lines "$child"
    done
}

words_of() { # OPTION... : how the program looks to others while CMD runs
    rm -f "$dir/go" "$dir/ready"
    mkfifo "$dir/go"
    "$hf" "$@" run job -- sh -c "touch '$dir/ready'; read -r line <'$dir/go'" &
    pid=$!
    within 10 test -e "$dir/ready"
    command_lines "$pid"
    echo >"$dir/go"
    wait "$pid"
}

seen=$(words_of --store "$url")
has "$seen" 'run job' 'the command line is there to be looked at'
has "$seen" 'tiny://user@host:1/x' 'with the rest of the URL'
quiet "$seen" '--store URL: no password in the command line'
quiet "$(words_of --store="$url")" '--store=URL'
quiet "$(words_of --sto "$url" --st="$url" --store tiny://x)" 'given more than once'

# what CMD is told
run holdfast --store "$url" run job -- env
has "$out" 'HOLDFAST_STORE=tiny://user@host:1/x?a=b&password=***' 'CMD knows the store'
quiet "$out$err" 'and not the password'
HOLDFAST_STORE=$url run holdfast run job -- env
has "$out" 'HOLDFAST_HELD=' 'the same from the environment'
quiet "$out$err" 'which does not go on to CMD'

# a holdfast below: it has the password, and nobody sees it
guarded=guarded://user:Zq7xWv9k@host
run holdfast --store "$guarded" run outer -- "$hf" run inner -- env
is "$rc" 0 'a run inside of a run: the password is there'
quiet "$out$err" 'and is not to be seen'
HOLDFAST_STORE=$guarded run holdfast run outer -- "$hf" run inner -- "$hf" status
is "$rc" 0 'two deep, from the environment'
run holdfast --store "$guarded" run outer -- sh -c "eval \"\$($hf acquire -n inner)\" && $hf list"
is "$rc" 0 'acquire, and what comes after it'
run holdfast --store "$guarded" run outer -- "$hf" --store guarded://user@host list
is "$rc" 77 'a --store of its own is taken as it is'
run holdfast --store "$guarded" run outer -- env HOLDFAST_STORE=guarded://other@host "$hf" list
is "$rc" 77 'so is another HOLDFAST_STORE'
run holdfast --store "$guarded" run outer -- bash -c "eval \"exec \$HOLDFAST_STORE_FD>&-\"; $hf list"
is "$rc" 77 'where the descriptor was closed it is gone'
has "$err" 'HOLDFAST_STORE' 'and the way out is named'
run holdfast --store "$guarded" run outer -- bash -c "eval \"exec \$HOLDFAST_STORE_FD</dev/null\"; $hf list"
is "$rc" 77 'another file there is not believed'
echo 'guarded://user@host
guarded://user:Zq7xWv9k@host' >"$dir/forged"
HOLDFAST_STORE=guarded://user@host HOLDFAST_STORE_FD=7 run holdfast list 7<"$dir/forged"
is "$rc" 77 'nor is a file that anybody could have written'
run holdfast --store tiny://host run outer -- env
check 'no password, no descriptor' not contains "$out" HOLDFAST_STORE_FD

# what is printed
export HOLDFAST_TRACE=1
for words in 'list' 'list --json' 'status' 'status --json' 'status job --json' 'repair' \
    'release job' 'acquire -n job' 'acquire -n job --json' 'trap --ttl 200ms' 'run -n job -- true' \
    'fence write'; do
    # shellcheck disable=SC2086 # words
    run holdfast --store "$url" $words </dev/null
    quiet "$out$err" "$words"
done
unset HOLDFAST_TRACE

# slips
for words in "$url list" "--store" "list $url" "status a $url" "repair $url" "run job $url" "run $url job true" \
    "version $url" "trap $url" "trap --store $url x" "fence $url" "fence set $url" "fence set $url k x" \
    "run --ttl $url job -- true" "run --on-loss $url job -- true" "fence set $url k" "help $url" \
    "renew $url" "--ttl=$url" "-$url"; do
    # shellcheck disable=SC2086 # words
    run holdfast $words </dev/null
    quiet "$out$err" "holdfast ${words//$url/URL}"
done

# a fenced key's URL is an operand
mkfifo "$dir/value"
"$hf" fence set "$url" key --token 5 <"$dir/value" 2>/dev/null &
pid=$!
exec 9>"$dir/value"
within 10 grep -q fence "/proc/$pid/cmdline"
within 3 sh -c "! tr '\0' ' ' </proc/$pid/cmdline | grep -Eq '$pieces'"
quiet "$(tr '\0' ' ' <"/proc/$pid/cmdline")" 'fence set URL: no password in the command line'
exec 9>&-
wait "$pid"

# a user name with a delimiter in it: refused, and nobody sees the password
for user in 'us#er' 'us/er' 'us?er' 'us?a=er'; do
    careless="tiny://$user:Zq7xWv9k@host:1"
    for words in 'run -n job -- env' 'acquire -n job' 'list' 'fence set'; do
        # shellcheck disable=SC2086 # words
        run holdfast --store "$careless" $words </dev/null
        refused 64 '' "$user: $words is refused"
        quiet "$out$err" "$user: $words says nothing of the password"
    done
    run holdfast fence write "$dir/fenced" --token 5 --issuer "$careless"
    quiet "$out$err" "$user: fence write says nothing of it"
    quiet "$(cat "$dir/.fenced.fence")" "$user: nor does what the fence remembers"
done

# and what a fence remembers of its issuer
holdfast fence write "$dir/file" --token 5 --issuer "$url" <<<data
is "$?" 0 'a fenced write with an issuer'
quiet "$(cat "$dir/.file.fence")" 'no password beside the data'
run holdfast fence show "$dir/file" --json
quiet "$out$err" 'nor in what is shown of it'

done_testing
