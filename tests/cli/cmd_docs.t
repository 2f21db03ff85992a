#!/bin/bash
# Help, man pages and completions say the same as the program, so that they cannot drift.
set -u
. "$(dirname "$0")/cmd.sh"

commands=$(holdfast help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
check 'there are commands' [ "$(printf '%s\n' "$commands" | wc -l)" -ge 9 ]

options_of() { # the long options that --help shows
    # shellcheck disable=SC2086 # two words, of a command below another
    holdfast $1 --help | sed -n 's/^  .. *,\{0,1\} *--\([a-z-]*\).*/\1/p'
}

plain() { # FILE: a man page without its backslashes
    sed 's/[\]//g' "$1"
}

summary_of() { # as the table says it
    holdfast help | sed -n "s/^  $1  *//p"
}

for command in $commands; do
    run holdfast "$command" --help
    is "$rc" 0 "$command --help"
    has "$out" "usage: holdfast $command" "$command --help shows its usage"
    help=$out
    run holdfast help "$command"
    is "$out" "$help" "help $command says the same"
    page=$root/man/holdfast-$command.1
    check "$command has a man page" test -f "$page"
    has "$(plain "$page")" "holdfast-$command - $(summary_of "$command")" "$command: the same summary"
    options=$(options_of "$command")
    words=$(plain "$page")
    missing=
    for option in $options; do
        case $words in *"--$option"*) ;; *) missing="$missing --$option" ;; esac
    done
    is "$missing" '' "man holdfast-$command has every option"
    extra=
    described=$(sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' <<<"$words" |
        awk 'tag { print } { tag = /^\.TP/ }' | grep -o -- '--[a-z-]*')
    for option in $described; do
        case $'\n'$options$'\n' in *$'\n'"${option#--}"$'\n'*) ;; *) extra="$extra $option" ;; esac
    done
    is "$extra" '' "man holdfast-$command has no option that is not there"
    check "holdfast(1) names $command" grep -q "^\.BR holdfast\\\\-$command (1)" "$root/man/holdfast.1"
done

# What has commands of its own shows the options of all of them, and the same option in the same words.
text_of() { # OPTION : of every command, without what it is said of
    local command
    for command in $commands; do
        holdfast "$command" --help | sed -n "s/^  *--$1  *\(.*: \)\{0,1\}//p"
    done
}
for command in fence idem outbox; do
    words=$(holdfast "$command" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    check "$command has commands" test -n "$words"
    is "$(options_of "$command" | sort -u)" "$(for word in $words; do options_of "$command $word"; done | sort -u)" \
        "$command --help has the options of them all"
done
is "$(text_of json | sort -u)" 'print JSON' '--json says the same everywhere'

# Nothing is described that is not there.
is "$(cd "$root/man" && printf '%s\n' holdfast-*.1 | sed 's/holdfast-//; s/[.]1$//')" \
    "$(printf '%s\n' "$commands" | LC_ALL=C sort)" 'a page for each command, and no other'
is "$(plain "$root/man/holdfast.1" | sed -n 's/^\.BR holdfast-\([a-z]*\) (1).*/\1/p' | sort -u)" \
    "$(printf '%s\n' "$commands" | sort)" 'holdfast(1) names each command, and no other'
listed=$(plain "$root/man/holdfast.1" | sed -n '/^\.SH COMMANDS/,/^\.SH [^C]/p')
for command in $commands; do
    has "$(tr '\n' ' ' <<<"$listed")" "holdfast-$command (1) $(summary_of "$command")" \
        "holdfast(1): $command with the same summary"
    has "$(cat "$root/completion/_holdfast")" "'$command:$(summary_of "$command")'" "zsh: $command, the same"
    has "$(cat "$root/completion/holdfast.fish")" "-a $command -d '$(summary_of "$command")'" "fish: $command, the same"
done

# completions
check 'bash completion: syntax' bash -n "$root/completion/holdfast.bash"
check 'zsh completion: syntax' zsh -n "$root/completion/_holdfast"
check 'fish completion: syntax' fish -n "$root/completion/holdfast.fish"

# shellcheck source=completion/holdfast.bash
. "$root/completion/holdfast.bash"
PATH=$(dirname "$hf"):$PATH
bash_offers() { # LINE: what bash offers at its end
    COMPREPLY=()
    COMP_LINE=$1 COMP_POINT=${#1}
    _holdfast
    printf '%s\n' "${COMPREPLY[@]}"
}
fish_offers() {
    HOME=$dir fish --no-config -c "source '$root/completion/holdfast.fish'; complete -C '$1'" | cut -f 1
}
is "$(bash_offers 'holdfast ')" "$commands" 'bash offers every command'
is "$(fish_offers 'holdfast ' | sort)" "$(printf '%s\n' "$commands" | sort)" 'fish offers every command'
is "$(sed -n "/commands=(/,/)/s/^ *'\([a-z]*\):.*/\1/p" "$root/completion/_holdfast")" "$commands" \
    'zsh knows every command'
for command in $commands; do
    wanted=$(options_of "$command" | sed 's/^/--/' | sort -u)
    is "$(bash_offers "holdfast $command --" | sort)" "$wanted" "bash offers every option of $command"
    is "$(fish_offers "holdfast $command --" | sort)" "$wanted" "fish offers every option of $command"
    line=$(awk -v start="^ *${command})" '$0 ~ start { on = 1 } on { print } on && /;;/ { exit }' \
        "$root/completion/_holdfast")
    line=${line//\$names/--all --any --slots --slot}
    line=${line//\$take/--no-wait --wait --busy-exit --label}
    line=${line//\$help/--help}
    line=${line//\$ttl/--ttl}
    line=${line//\$json/--json}
    is "$(grep -o -- '--[a-z][a-z-]*' <<<"$line" | sort -u)" "$wanted" "zsh knows every option of $command"
done

holdfast acquire -n --ttl 1h 'job:nightly one' >/dev/null
is "$(bash_offers 'holdfast status ')" "job:nightly\\ one" 'bash offers the names of locks'
is "$(bash_offers 'holdfast status job:n')" "nightly\\ one" 'also after a colon'
is "$(bash_offers "holdfast --store file:$dir/none status ")" '' 'of the store that is named'
is "$(fish_offers 'holdfast status ')" 'job:nightly one' 'fish offers the names of locks'
is "$(bash_offers 'holdfast run --on-loss ')" $'term\nkill\nwarn' 'bash offers choices'

# stores
schemes=$(holdfast --store nosuch://h list 2>&1 | sed -n 's/.*known are //p' | tr -d ,)
check 'there are schemes' test "$(wc -w <<<"$schemes")" -ge 9
run holdfast help stores
is "$rc" 0 'help stores'
page=$(plain "$root/man/holdfast.1")
bash_stores=$(bash_offers 'holdfast --store ')
fish_stores=$(fish_offers 'holdfast --store ')
for scheme in $schemes; do
    has "$out" "$scheme:" "help stores: $scheme"
    has "$page" "$scheme:" "holdfast(1): $scheme"
    has "$bash_stores" "$scheme:" "bash offers --store $scheme:"
    has "$fish_stores" "$scheme:" "fish offers --store $scheme:"
    check "zsh knows --store $scheme:" grep -q "compadd.* $scheme:" "$root/completion/_holdfast"
done
is "$(awk 'length > 80' "$dir/out")" '' 'help stores fits a terminal'
for folder in "$root"/src/stores/*/; do
    name=$(basename "$folder")
    check "$name: has a man page" test -f "$root/man/holdfast-$name.7"
    check "$name: help stores names it" grep -qw "$name" <<<"${out##*man holdfast-}"
done
for page in "$root"/man/holdfast-*.7; do
    name=$(basename "$page" .7)
    check "holdfast(1) names $name(7)" \
        sh -c "sed -n '/SH SEE ALSO/,\$p' '$root/man/holdfast.1' | grep -q '${name//-/\\\\-} (7)'"
done
has "$(cat "$root/man/holdfast.1")" HOLDFAST_TRACE 'holdfast(1) names HOLDFAST_TRACE'

# man pages
check 'the pages are well formed' test -z "$(for page in "$root"/man/*.[1-8]; do
    groff -man -Tutf8 -ww -z "$page" 2>&1
done)"
version=$(holdfast version)
check 'and of this version' test -z "$(grep -L "\"$version\"" "$root"/man/*.[1-8])"

done_testing
