#!/bin/bash
# The issuer of a token is the store, not its URL: a directory under any path, even after a reboot or a
# bind mount, and a store that cannot be asked.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
unset HOLDFAST_STORE
cd "$dir" || exit 1
by() { # URL TOKEN
    HOLDFAST_STORE=$1 "$hf" fence write issued --token "$2" <<<"by $2" >out 2>err
    rc=$?
}
mkdir deep
by "file:$dir/store" 5
like "$("$hf" fence show issued --json)" '"issuer": "id:file:[0-9a-f]{32}"' 'a directory has an identity'
ln -s "$dir" way
token=5
for url in "file:$dir/./store" "file:$dir/deep/../store" "file:$dir/way/store"; do
    by "$url" $((++token))
    is "$rc$(cat issued)" "0by $token" "$url is the same store"
done
mv store moved
by "file:$dir/moved" $((++token))
is "$rc" 0 'also when it was moved'
by "file:$dir/another" 99
is "$rc" 64 'another directory is another store'
like "$(cat err)" "fence reset --token $token\"" 'and the remedy for the same store keeps the mark'
crowd=
for n in $(seq 20); do
    HOLDFAST_STORE=file:$dir/race "$hf" fence write "r$n" --token 5 <<<x 2>>err &
    crowd="$crowd $!"
done
# shellcheck disable=SC2086 # they are words
wait $crowd
is "$(for n in $(seq 20); do "$hf" fence show "r$n" --json | jq -r .issuer; done | sort -u | wc -l)" 1 'twenty that come first agree'
is "$(find race -name 'identity.*' | wc -l)" 0 'and leave nothing behind'
printf short >another/identity
by "file:$dir/another" 99
is "$rc" 0 'a damaged identity is as one that is not known'
by redis://127.0.0.1:1 100
is "$rc" 0 'and so is a store that cannot be asked now'
rm -f issued .issued.fence
"$hf" fence write issued --token 5 --issuer redis://127.0.0.1:1 <<<x
by redis://127.0.0.1:2 6
is "$rc" 64 'but its URL counts where the mark names one'
by redis://127.0.0.1:1 6
is "$rc" 0 'as before'
done_testing
