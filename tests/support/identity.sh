# identity.sh - a store is the same whatever its URL looks like, as its fences see it. Sourced after stage.sh.
# shellcheck shell=bash disable=SC2154 # dir and hf are of stage.sh

write_by() { # URL TOKEN : a fenced file, by the tokens of that store
    answer=$(cd "$dir" && HOLDFAST_STORE=$1 "$hf" fence write issued --token "$2" <<<"by $2" 2>&1)
}

issuer() { (cd "$dir" && "$hf" fence show issued --json | jq -r .issuer); }

# same_store KIND TEXT URL URL... : every URL is the first one's store
same_store() {
    local kind=$1 text=$2 first=$3 token=10 url
    rm -f "$dir/issued" "$dir/.issued.fence"
    write_by "$first" "$token"
    like "$(issuer)" "id:$kind:*" "a fence remembers who the store is"
    for url in "${@:4}"; do
        write_by "$url" $((++token))
        is "$?$(cat "$dir/issued")" "0by $token" "$text: $url is the same store"
    done
}

other_store() { # URL TEXT : not the store of the fence so far
    write_by "$1" 99
    is "$?" 64 "$2 is another store"
}

# A mark of an earlier version names the URL. That is understood, and then the store is known for good.
old_mark() { # URL ANOTHER
    rm -f "$dir/issued" "$dir/.issued.fence"
    (cd "$dir" && "$hf" fence write issued --token 5 --issuer "$1" <<<old)
    write_by "$2" 6
    is "$?" 64 'a mark that names a URL cannot know another one'
    like "$answer" '*"holdfast fence reset --token 5"*' 'and the remedy keeps the mark'
    write_by "$1" 6
    is "$?$(cat "$dir/issued")" '0by 6' 'but understands its own'
    write_by "$2" 7
    is "$?$(cat "$dir/issued")" '0by 7' 'and then every one'
}
