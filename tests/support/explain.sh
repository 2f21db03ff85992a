# explain.sh - what `holdfast explain` says, in a form that can be compared. Sourced by bash.
# shellcheck shell=bash disable=SC2154 # root is of the caller

# golden : tokens, times and durations of the text on stdin become words
golden() {
    sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/TIME/g; s/token( +)[0-9]{10,}/token\1TOKEN/g
        s/\b([0-9]+d)?([0-9]+h)?([0-9]+m)?[0-9.]+(ms|s)\b/SPAN/g; s/\b[0-9]+h[0-9]+m\b/SPAN/g; s/ in [a-z]+:[^ ]*: / in URL: /; s/ by [^ ]+@[^ ]+: / by US: /'
}

# fits_schema FILE : each line of it is as docs/explain.schema.json says
fits_schema() {
    python3 -c 'import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
lines = open(sys.argv[2]).read().splitlines()
assert lines
for line in lines:
    jsonschema.validate(json.loads(line), schema)' "$root/docs/explain.schema.json" "$1"
}
