#!/bin/bash
# The issuer of a token is the store, not its URL: a directory under any path, also after a reboot or a
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

# Below `run` the store need not be asked: who it is was handed down.
export HOLDFAST_STORE=file:$dir/given
"$hf" run job -- sh -c 'echo "$HOLDFAST_ISSUER"' >out
like "$(cat out)" '^id:file:[0-9a-f]{32}$' 'run says who the store is'
id=$(cat out)
"$hf" run job -- sh -c "mv given hidden; echo x | '$hf' fence write below; ls -d given 2>/dev/null; mv hidden given" >out 2>err
is "$("$hf" fence show below --json | jq -r .issuer)" "$id" 'a fence below it needs no store'
is "$(cat out)" '' 'and makes none'
"$hf" run job -- sh -c "echo x | HOLDFAST_STORE=file:$dir/elsewhere '$hf' fence write moved1;
    echo x | '$hf' --store 'file:$dir/elsewhere' fence write moved2"
elsewhere=id:file:$(cat elsewhere/identity)
is "$("$hf" fence show moved1 --json | jq -r .issuer)" "$elsewhere" 'another HOLDFAST_STORE below it is another store'
is "$("$hf" fence show moved2 --json | jq -r .issuer)" "$elsewhere" 'so is --store'
"$hf" run job -- "$hf" --store "file:$dir/elsewhere" run inner -- sh -c "echo x | '$hf' fence write nested"
is "$("$hf" fence show nested --json | jq -r .issuer)" "$elsewhere" 'the innermost run counts'
HOLDFAST_ISSUER=id:file:0 "$hf" fence write nobody --token 5 </dev/null
is "$("$hf" fence show nobody --json | jq -r .issuer)" "$id" 'without a hold above nobody is believed'
done_testing
