#!/bin/bash
# `holdfast odds`: the well-known case, the third column, and what is not a number.
set -u
. "$(dirname "$0")/cmd.sh"

known=(--ttl 10s --pause 1e-4 --rate 10000/s)
run holdfast odds "${known[@]}"
is "$rc" 0 'the well-known case'
like "$out" '^  10s +1 per second +1 per second +0 +up to 10s$' \
    'a lease of 10s, one in 10,000 paused beyond it, 10,000 per second: one violation per second'
like "$out" '^  20s +one every 2[.]8s +one every 2[.][6-9]s? +0 +up to 20s$' 'twice the ttl, 2.8 times as rare'
has "$out" '20s instead of 10s' 'and what that costs after a crash'
has "$out" 'Pareto' 'the model is named'
has "$out" 'seed 1.' 'and the seed'
is "$(awk 'length > 100' "$dir/out")" '' 'lines that fit'
first=$out
run holdfast odds "${known[@]}"
is "$out" "$first" 'the same again with the same seed'
run holdfast odds "${known[@]}" --seed 2
check 'another story with another' test "$out" != "$first"

run holdfast odds "${known[@]}" --json
json '.rows[0].violations_per_s == 1' 'JSON: by arithmetic'
json '(.rows[0].simulated_per_s - 1 | fabs) < 0.05' 'JSON: by simulation'
json '[.rows[].fenced_violations] == [0,0,0,0]' 'JSON: none gets past a fence'
json '[.rows[].blocked_ms] == [10000,20000,40000,80000]' 'JSON: blocked after a crash'
json '.model == {"pauses":"pareto","tail":1.5,"seed":1}' 'JSON: model and seed'

# Nothing asks a store, or makes one.
run holdfast --store redis://127.0.0.1:1 odds "${known[@]}"
is "$rc" 0 'no store is asked'
check 'and none is made' test ! -e "$dir/store"

run holdfast odds "${known[@]}" --svg "$dir/odds.svg"
check 'the picture is well-formed' \
    python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$dir/odds.svg"
check 'and shows both' grep -q '0 violations reach the data' "$dir/odds.svg"
run holdfast odds "${known[@]}" --svg /no/such/dir/x.svg
refused 69 'cannot write' 'a picture that cannot be written'

# What the same share and rate look like otherwise.
run holdfast odds "${known[@]}" --json
same=$out
for words in '0.01% 10000/s' '1/10000 600000/m' '0.0001 36000000/h' '.0001 864000000/d' '1e-04 1e4/s'; do
    # shellcheck disable=SC2086 # two words
    set -- $words
    run holdfast odds --ttl 10s --pause "$1" --rate "$2" --json
    is "$out" "$same" "$words is the same"
done

# What is not a number.
for pause in nan inf -1 2 101% 1e300 0x1 e5 1e 1/0 1/ '' ' 1e-4' '1e-4 ' 1/3x 1e-4/s; do
    run holdfast odds --ttl 10s --pause="$pause" --rate 1/s
    refused 64 "is not a share" "--pause '$pause'"
done
for rate in 10000 0/s -1/s 1e300/s nan/s inf/s 1/w /s 1e/s '' 1/s/s; do
    run holdfast odds --ttl 10s --pause 1e-4 --rate="$rate"
    refused 64 "is not a rate" "--rate '$rate'"
done
for tail in 0 -1 nan 11 1e300 ''; do
    run holdfast odds "${known[@]}" --tail="$tail"
    refused 64 'is not a number from 0.1 to 10' "--tail '$tail'"
done
run holdfast odds --ttl 0 --pause 1e-4 --rate 1/s
refused 64 'too short' '--ttl 0'
run holdfast odds --ttl 2d --pause 1e-4 --rate 1/s
refused 64 'too long' '--ttl 2d'
run holdfast odds --pause 1e-4 --rate 1/s
refused 64 'are needed' 'no ttl'
run holdfast odds "${known[@]}" more
refused 64 'unexpected word' 'a word too many'

# The edges.
run holdfast odds --ttl 10s --pause 0 --rate 1/s
has "$out" 'more than anybody can promise' 'no pauses at all: that is a wish'
run holdfast odds --ttl 1d --pause 1e-300 --rate 1/d
like "$out" '^  1d +one every .* years +none seen ' 'rarer than anything that can be seen'
check 'and no ttl that no store grants' test "$(grep -c 'up to' <<<"$out")" = 1
run holdfast odds --ttl 100ms --pause 1 --rate 1e9/s --tail 0.1 --json
json '.rows[0].violations_per_s == 1e9' 'all of very many'

done_testing
