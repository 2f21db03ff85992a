# doctor.sh - what the tests of `holdfast doctor` share, whatever the store. Sourced by bash after the
# folder's own lib.sh, whose ok it uses.
# shellcheck shell=bash disable=SC2034,SC2154 # $dir and $hf are of those; $rc is for the tests

# examine URL [OPTION...] : looks at the store; $rc, and what was said in $dir/doctor.json and .err
examine() {
    local url=$1
    shift
    "$hf" --store "$url" doctor --json "$@" >"$dir/doctor.json" 2>"$dir/doctor.err" </dev/null
    rc=$?
    answer=$(jq -c '[.error, .fit, (.verdicts[] | [.rule, .level, .where, .found])]' "$dir/doctor.json" 2>&1)
}

# holds FILTER DESCRIPTION [ARG...] : of the last answer
holds() {
    local filter=$1 what=$2
    shift 2
    jq -e "$@" "$filter" "$dir/doctor.json" >/dev/null 2>&1
    ok $? "$what"
}

# finds RULE... : each of them was found; spares: none of them; unchecked: each could not be checked
finds() {
    local rule
    for rule; do
        # shellcheck disable=SC2016 # jq's
        holds '[.verdicts[] | select(.rule == $r and .level != "unchecked")] | length > 0' \
            "found: $rule" --arg r "$rule"
    done
}
spares() {
    local rule
    for rule; do
        # shellcheck disable=SC2016
        holds '[.verdicts[] | select(.rule == $r)] | length == 0' "not found: $rule" --arg r "$rule"
    done
}
unchecked() {
    local key
    for key; do
        # shellcheck disable=SC2016
        holds '[.verdicts[] | select(.key == $k and .level == "unchecked" and
            (.found | startswith("could not check: ")))] | length > 0' "could not check: $key" --arg k "$key"
    done
}

# fact KEY : its value, of the first server
fact() {
    jq -r --arg k "$1" '[.facts[] | select(.key == $k)][0].value' "$dir/doctor.json"
}

# fits_schema DESCRIPTION : the last answer is as docs/doctor.schema.json says
fits_schema() {
    python3 -c 'import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' \
        "$dir/doctor.json" "$(dirname "${BASH_SOURCE[0]}")/../../docs/doctor.schema.json" 2>"$dir/doctor.err"
    ok $? "$1"
}
