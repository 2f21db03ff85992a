#!/bin/sh
# sim.t - ten thousand histories of a redlock store, and every broken rule noticed in them; in the long tests
# two hundred thousand. `make sim` runs more.
# run: once
# run: also long
set -u
cd "$(dirname "$0")/../.." || exit 1
sim=./${BUILD:-build}/tests/sim/tool_sim
n=0
report() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

seeds=${HOLDFAST_LONG:+200000}
seeds=${seeds:-10000}
out=$($sim --seeds "$seeds")
report $? "$seeds histories keep every promise"
echo "# $out"
lost=$(echo "$out" | sed -n 's/.* unfenced_lost \([0-9]*\).*/\1/p')
stale=$(echo "$out" | sed -n 's/.* stale_refused \([0-9]*\).*/\1/p')
[ "${lost:-0}" -gt 100 ]
report $? "without a fence the same histories lose updates (${lost:-none})"
[ "${stale:-0}" -gt 100 ]
report $? "the fence refused stale holders (${stale:-none})"
breaks=$(echo "$out" | sed -n 's/.* breaks \([0-9]*\).*/\1/p')
[ "${breaks:-0}" -gt 100 ]
report $? "holds were broken, and none of them renewed after that (${breaks:-none})"
anew=$(echo "$out" | sed -n 's/.* begun_anew \([0-9]*\).*/\1/p')
[ "${anew:-0}" -gt 100 ]
report $? "what a store did not wait out, the library did (${anew:-none})"
[ "$($sim --seeds 100)" != '' ] && [ "$($sim --seeds 50 | sed 's/ [a-z_]*_per_s.*//')" = \
    "$($sim --seeds 50 | sed 's/ [a-z_]*_per_s.*//')" ]
report $? 'the same seeds are the same histories'
for mutant in $($sim --mutants); do
    out=$($sim --seeds 10000 --mutant "$mutant")
    [ $? -eq 1 ]
    report $? "$mutant is noticed: $(echo "$out" | head -n 1)"
    case $out in
    *directed*) ;;
    *)
        # The command that is printed replays it.
        seed=$(echo "$out" | sed -n 's/^seed \([0-9]*\) failed.*/\1/p')
        $sim --seed "$seed" --mutant "$mutant" >/dev/null
        [ $? -eq 1 ]
        report $? "$mutant: seed $seed fails again"
        ;;
    esac
done
echo "1..$n"
