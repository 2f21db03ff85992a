#!/bin/bash
# status and list: what everybody can see.
set -u
. "$(dirname "$0")/cmd.sh"

# a store that is not there: looking does not make it
there() { find "$dir" -mindepth 1 ! -name out ! -name err; }
mkdir -m 700 "$dir/bare"
before=$(there)
run holdfast list --json
json '. == []' 'list --json of a store that is not there'
run holdfast status
has "$out" "file:$dir/store" 'status of a store that is not there names it'
run holdfast status free
has "$out" 'free: free' 'status of a lock in it'
(cd "$dir" && holdfast --store file:beside/it list --names && holdfast --store file: list --names)
is "$?" 0 'a relative path, and the default directory'
run holdfast --store "file:$dir/bare" list
is "$rc$out" 0 'a directory with no store in it yet'
run holdfast --store "file:$dir/out" list
refused 64 'cannot open' 'what is no directory is no store'
is "$(there)" "$before" 'nothing was made'

# an empty store
holdfast acquire --ttl 100ms first >/dev/null && sleep 0.2
run holdfast list --json
json '. == []' 'list --json of an empty store'
run holdfast list
is "$rc$out" 0 'list of an empty store prints nothing'
has "$err" 'no lock is held' 'and says why on stderr'
run holdfast list --names
is "$rc$out$err" 0 'list --names of an empty store prints nothing at all'
run holdfast status free
is "$rc" 0 'status of a free lock: exit 0'
has "$out" 'free: free' 'it says so'
run holdfast status free --json
json '.held == false and .token == null and .label == null and .age_ms == null' 'free, as JSON'

# some locks
take() { holdfast acquire -n --ttl 1h "$@" >/dev/null; }
take b/2 --label 'second label'
take b/10
take a
take 'with blanks and ümlaut'
take "$(printf 'bad\377utf8')"
take '"quoted\"'

run holdfast list --json
json 'length == 6' 'list --json: all of them'
json '[.[].name | select(test("^a$|^b/|^w"))] == ["a", "b/10", "b/2", "with blanks and ümlaut"]' 'sorted'
json 'any(.[]; .name == "\"quoted\\\"")' 'a name with quotes is whole'
json 'any(.[]; .name == "bad\ufffdutf8")' 'a name that is not UTF-8 stays valid JSON'
json 'all(.[]; .held and .detached and .token > 0 and .waiters == 0 and .age_ms >= 0)' 'what is known'
json 'all(.[]; .remaining_ms > 3000000 and .remaining_ms <= 3600000)' 'and for how long'
json 'all(.[]; has("owner") | not)' 'never the owner'
run holdfast list --names
is "$(printf '%s\n' "$out" | LC_ALL=C sort)" "$out" 'list --names is sorted by bytes'
is "$(printf '%s\n' "$out" | wc -l)" 6 'one name on a line'
run holdfast list --names b/
is "$out" "b/10
b/2" 'list with a prefix'
run holdfast list nothing
is "$rc$out" 0 'a prefix that fits none'
has "$err" "starts with \"nothing\"" 'it does not say that nothing is held'
run holdfast list --names --json
refused 64 'cannot be used together' '--names with --json'

run holdfast list
is "$(printf '%s\n' "$out" | head -n 1 | tr -s ' ')" 'NAME TOKEN AGE REMAINING WAITERS LABEL' 'a heading'
has "$out" 'second label' 'labels are shown'
is "$(printf '%s\n' "$out" | wc -l)" 7 'a line for each lock'
# where LABEL starts, counted in characters, must be where each label starts
run holdfast list b/
is "$(printf '%s\n' "$out" | sed -n 's/second label.*//p' | wc -c)" \
    "$(printf '%s\n' "$out" | sed -n 's/LABEL.*//p' | wc -c)" 'columns are aligned'

run holdfast status b/2
has "$out" 'b/2: held' 'status: held'
has "$out" 'second label' 'status: label'
has "$out" 'belongs to no process' 'status: detached'
run holdfast status a --json
json ".label | endswith(\"/$$/$(cat /proc/$$/comm)\")" 'by default the label names the script that took it'
run holdfast status b/2 --json
json '.name == "b/2" and .held and .label == "second label"' 'status --json'
json 'keys == ["age_ms","broken","detached","foreign","held","label","name","remaining_ms","token","ttl_ms","waiters"]' \
    'status --json: the keys that the man page promises'

# for monitoring
run holdfast status --held a
is "$rc" 0 'status --held of a held lock: 0'
has "$out" 'a: held' 'and it is shown'
run holdfast status --free a
is "$rc" 1 'status --free of a held lock: 1'
run holdfast status --free nobodys --json
is "$rc" 0 'status --free of a free lock: 0'
json '.held == false' 'and it is shown'
run holdfast status --held nobodys
is "$rc" 1 'status --held of a free lock: 1'
echo 'open unreachable' >"$dir/mood"
run env HOLDFAST_STORE_PATH="$(cd "${BUILD:-build}" && pwd)/tests/plugins" "$hf" \
    --store "moody:$dir/mood" status --held a
is "$rc" 69 'nobody knows: 69, not 1'
run holdfast status --held
refused 64 'name' '--held without a name'
run holdfast status --held --free a
refused 64 'cannot be used together' '--held with --free'

# the store as a whole
run holdfast status
has "$out" "file:$dir/store" 'status without a name: the store'
run holdfast status --json
json '.held == 6 and .waiters == 0 and .waited_for == 0' 'counts'
json '.features | index("fair") and index("crash-release") and index("durable-tokens")' 'features'

# a listing that breaks off: what is known is shown, and that there may be more is said
build=$(cd "${BUILD:-build}" && pwd)
moody() { HOLDFAST_STORE_PATH=$build/tests/plugins holdfast --store "moody:$dir/mood" "$@"; }
echo 'half unreachable' >"$dir/mood"
run moody list --names
is "$out" $'first\nsecond' 'a listing that breaks off: what came is shown, sorted'
refused 69 'its half is unreachable' 'and then why, with its exit code'
run moody list
has "$out" 'of a moody store' 'also as a table'
refused 69 'its half is unreachable' 'and then why'
run moody list --json
json '[.[].name] == ["first", "second"]' 'and as JSON'
is "$rc" 69 'with the same exit code'
echo 'look unreachable' >"$dir/mood"
for form in --json --names ''; do
    # shellcheck disable=SC2086
    run moody list $form
    is "$rc:$out" 69: "nothing came at all: nothing is shown that looks like an answer ${form:-as a table}"
    refused 69 'its look is unreachable' 'but why'
done

# what steers a terminal, or turns a text around, reaches none
evil=$(printf 'x\302\233\342\200\256y')
take "$evil" --label "me$evil"
raw=$(printf '\302\233')
for words in 'list' 'list x' 'status' 'run -n' 'acquire -n'; do
    case $words in
    run*) run holdfast run -n "$evil" -- true ;;
    status) run holdfast status "$evil" ;;
    acquire*) run holdfast acquire -n "$evil" ;;
    *) run holdfast list "${words:5}" ;;
    esac
    has "$out$err" 'x??y' "$words: shown as can be"
    check "$words: nothing else" not contains "$out$err" "$raw"
done
run holdfast list --json x
json ".[0].name == \"x\\u009b\\u202ey\"" 'list --json: whole'
check 'list --json: escaped' not contains "$out" "$raw"
run holdfast list --names x
is "$out" "$evil" 'list --names: as it is, for other programs'
script -qefc "$hf list --names x" "$dir/screen" >/dev/null
has "$(cat "$dir/screen")" 'x??y' 'list --names on a terminal: as can be shown'

done_testing
