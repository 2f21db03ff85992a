#!/bin/sh
# run.sh - all measurements, as a table and as JSON (build/bench.json).
#
# Each program prints rows of name, value, bound, unit and verdict, with a tab between. Programs and
# scripts for other stores stand beside this one and are called when they are there.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rows=$dir/rows

# run NAME COMMAND...: rows of one program, in a folder of its own.
run() {
    echo "measuring: $1" >&2
    mkdir "$dir/$1"
    name=$1
    shift
    "$@" >>"$rows" || printf '%s failed\t\tmust run\t\tMISS\n' "$name" >>"$rows"
    rm -rf "${dir:?}/$name"
}

run pair build/bench/bench_pair "$dir/pair"
run handover build/bench/bench_handover "$dir/handover"
run run build/bench/bench_run "$dir/run" build/holdfast
for script in bench/*.sh; do
    case $script in
    bench/run.sh | bench/rows.sh | bench/*_clients.sh) ;; # these are called by others
    *) run "$(basename "$script" .sh)" "$script" ;;
    esac
done

echo
echo "$(nproc) cores, $(uname -sr), $(date -u +%Y-%m-%d)"
awk -F'\t' '{ printf "%-52s %12s %-4s %-9s %s\n", $1, $2, $4, $3, $5 }' "$rows"
awk -F'\t' 'BEGIN { print "[" }
    { gsub(/"/, "\\\"", $1)
      printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\", \"bound\": \"%s\", \"verdict\": \"%s\"}",
          (NR > 1 ? ",\n" : ""), $1, ($2 ~ /^[0-9.]+$/ ? $2 : "null"), $4, $3, $5 }
    END { print "\n]" }' "$rows" >build/bench.json
echo "also in build/bench.json" >&2
! grep -q 'MISS$' "$rows"
