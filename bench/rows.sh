# rows.sh - how the measuring scripts print. Sourced by bash.
#
#   row NAME VALUE BOUND UNIT   name<TAB>value<TAB>bound<TAB>unit<TAB>verdict. A bound is "<=N", ">=N",
#                               "=N" or "-"; the verdict is ok or MISS, or absent without a value
#   ratio A B                   A / B, or nothing where one is missing
# shellcheck shell=bash

row() {
    local verdict
    if [ -z "$2" ]; then
        printf '%s\t-\t%s\t%s\tabsent\n' "$1" "$3" "$4"
        return
    fi
    verdict=$(awk -v v="$2" -v bound="$3" 'BEGIN { n = bound; gsub(/[<>=]/, "", n)
        ok = bound ~ /^<=/ ? v <= n + 0 : bound ~ /^>=/ ? v >= n + 0 : bound ~ /^=/ ? v == n + 0 : 1
        print ok ? "ok" : "MISS" }')
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$verdict"
}
ratio() { [ -z "$1" ] || [ -z "$2" ] || awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b }'; }
